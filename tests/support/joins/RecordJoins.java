// Prints cases of interval joins, window joins and evictors with what Flink's own operators give for them, one JSON object
// per line: recorded.jsonl is what it printed. The class path is that of pom.xml beside it:
// mvn -q dependency:build-classpath -Dmdep.outputFile=classpath
// java --add-opens java.base/java.util=ALL-UNNAMED -cp "$(cat classpath)" RecordJoins.java > recorded.jsonl

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;

import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.CoGroupFunction;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.datastream.CoGroupedStreams;
import org.apache.flink.util.TaggedUnion;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.WindowedStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.co.ProcessJoinFunction;
import org.apache.flink.streaming.api.functions.windowing.WindowFunction;
import org.apache.flink.streaming.api.functions.windowing.delta.DeltaFunction;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.operators.co.IntervalJoinOperator;
import org.apache.flink.streaming.api.transformations.OneInputTransformation;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.api.windowing.assigners.*;
import org.apache.flink.streaming.api.windowing.evictors.*;
import org.apache.flink.streaming.api.windowing.triggers.*;
import org.apache.flink.streaming.api.windowing.windows.Window;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.util.KeyedOneInputStreamOperatorTestHarness;
import org.apache.flink.streaming.util.KeyedTwoInputStreamOperatorTestHarness;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

public class RecordJoins {
    static final TypeInformation<Tuple2<String, Integer>> RECORD = Types.TUPLE(Types.STRING, Types.INT);
    static final String[] KEYS = {"a", "b"};

    public static void main(String[] arguments) throws Exception {
        for (int seed = 0; seed < 60; seed++) {
            System.out.println(intervalJoin(new Random(seed)));
        }
        for (int seed = 0; seed < 40; seed++) {
            System.out.println(coGroup(new Random(1000 + seed)));
        }
        for (int seed = 0; seed < 80; seed++) {
            System.out.println(evictor(new Random(2000 + seed)));
        }
    }

    /** What came out since the last call: values with their timestamps, in the order of their text, and no watermarks. */
    static String taken(Iterable<Object> output) {
        List<String> lines = new ArrayList<>();
        for (Object element : output) {
            if (element instanceof StreamRecord) {
                StreamRecord<?> record = (StreamRecord<?>) element;
                lines.add("\"" + record.getValue() + "@" + record.getTimestamp() + "\"");
            }
        }
        Collections.sort(lines);
        return lines.toString();
    }

    static String intervalJoin(Random random) throws Exception {
        int lower = random.nextInt(13) - 6;
        int upper = lower + random.nextInt(8);
        boolean lowerInclusive = random.nextBoolean();
        boolean upperInclusive = random.nextBoolean();
        OutputTag<Tuple2<String, Integer>> late1 = new OutputTag<>("late1", RECORD);
        OutputTag<Tuple2<String, Integer>> late2 = new OutputTag<>("late2", RECORD);
        TypeSerializer<Tuple2<String, Integer>> serializer =
                RECORD.createSerializer(new org.apache.flink.api.common.serialization.SerializerConfigImpl());
        IntervalJoinOperator<String, Tuple2<String, Integer>, Tuple2<String, Integer>, String> operator =
                new IntervalJoinOperator<>(lower, upper, lowerInclusive, upperInclusive, late1, late2, serializer, serializer,
                        new ProcessJoinFunction<Tuple2<String, Integer>, Tuple2<String, Integer>, String>() {
                            @Override
                            public void processElement(Tuple2<String, Integer> left, Tuple2<String, Integer> right,
                                    Context context, Collector<String> out) {
                                out.collect(left.f1 + "-" + right.f1 + " " + context.getLeftTimestamp() + " "
                                        + context.getRightTimestamp());
                            }
                        });
        StringBuilder steps = new StringBuilder();
        try (KeyedTwoInputStreamOperatorTestHarness<String, Tuple2<String, Integer>, Tuple2<String, Integer>, String> harness =
                new KeyedTwoInputStreamOperatorTestHarness<>(operator, r -> r.f0, r -> r.f0, Types.STRING)) {
            harness.open();
            long[] watermarks = {Long.MIN_VALUE, Long.MIN_VALUE};
            for (int step = 0; step < 30; step++) {
                int side = random.nextInt(2);
                String what;
                if (random.nextInt(5) == 0) {
                    long time = Math.max(watermarks[side], step - 4L + random.nextInt(5));
                    watermarks[side] = time;
                    if (side == 0) {
                        harness.processWatermark1(new Watermark(time));
                    } else {
                        harness.processWatermark2(new Watermark(time));
                    }
                    what = "\"watermark" + (side + 1) + "\", null, " + time;
                } else {
                    Tuple2<String, Integer> record = Tuple2.of(KEYS[random.nextInt(2)], step);
                    long time = step - 5L + random.nextInt(10);
                    if (side == 0) {
                        harness.processElement1(new StreamRecord<>(record, time));
                    } else {
                        harness.processElement2(new StreamRecord<>(record, time));
                    }
                    what = "\"element" + (side + 1) + "\", [\"" + record.f0 + "\", " + record.f1 + "], " + time;
                }
                steps.append(step == 0 ? "" : ", ").append("[").append(what).append(", ")
                        .append(taken(harness.getOutput())).append(", ").append(harness.numEventTimeTimers()).append("]");
                harness.getOutput().clear();
            }
            String left = taken(new ArrayList<>(harness.getSideOutput(late1) == null
                    ? Collections.emptyList() : harness.getSideOutput(late1)));
            String right = taken(new ArrayList<>(harness.getSideOutput(late2) == null
                    ? Collections.emptyList() : harness.getSideOutput(late2)));
            return "{\"kind\": \"interval\", \"lower\": " + lower + ", \"upper\": " + upper + ", \"lower_inclusive\": "
                    + lowerInclusive + ", \"upper_inclusive\": " + upperInclusive + ", \"late\": [" + left + ", " + right
                    + "], \"steps\": [" + steps + "]}";
        }
    }

    static String describe(String type, long... arguments) {
        return "[\"" + type + "\", " + java.util.Arrays.toString(arguments) + "]";
    }

    /** A window assigner or a trigger, with its description. */
    static Tuple2<WindowAssigner<Object, ?>, String> assigner(Random random) {
        long size = 4 + random.nextInt(6);
        switch (random.nextInt(4)) {
            case 0:
                return Tuple2.of((WindowAssigner) TumblingEventTimeWindows.of(Duration.ofMillis(size)),
                        describe("TumblingEventTimeWindows", size));
            case 1:
                long slide = 2 + random.nextInt(3);
                return Tuple2.of((WindowAssigner) SlidingEventTimeWindows.of(Duration.ofMillis(size), Duration.ofMillis(slide)),
                        describe("SlidingEventTimeWindows", size, slide));
            case 2:
                return Tuple2.of((WindowAssigner) EventTimeSessionWindows.withGap(Duration.ofMillis(size / 2)),
                        describe("EventTimeSessionWindows", size / 2));
            default:
                return Tuple2.of((WindowAssigner) GlobalWindows.create(), describe("GlobalWindows"));
        }
    }

    static Tuple2<Trigger<Object, ?>, String> trigger(Random random, boolean needed) {
        long count = 2 + random.nextInt(3);
        switch (needed ? random.nextInt(2) : random.nextInt(5)) {
            case 0:
                return Tuple2.of((Trigger) CountTrigger.of(count), describe("CountTrigger", count));
            case 1:
                return Tuple2.of((Trigger) PurgingTrigger.of(CountTrigger.of(count)), describe("PurgingTrigger", count));
            default:
                return Tuple2.of(null, "null");
        }
    }

    static String coGroup(Random random) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Tuple2<String, Integer>> one = env.fromData(Tuple2.of("a", 1));
        DataStream<Tuple2<String, Integer>> two = env.fromData(Tuple2.of("a", 1));
        Tuple2<WindowAssigner<Object, ?>, String> assigner = assigner(random);
        Tuple2<Trigger<Object, ?>, String> trigger = trigger(random, assigner.f1.contains("Global"));
        int lateness = random.nextInt(3) * 2;
        boolean sorts = assigner.f1.contains("Session");
        CoGroupedStreams.WithWindow windows = one.coGroup(two).where(r -> r.f0, Types.STRING).equalTo(r -> r.f0, Types.STRING)
                .window((WindowAssigner) assigner.f0).allowedLateness(Duration.ofMillis(lateness));
        if (trigger.f0 != null) {
            windows = windows.trigger((Trigger) trigger.f0);
        }
        DataStream<String> stream = windows.apply(
                new CoGroupFunction<Tuple2<String, Integer>, Tuple2<String, Integer>, String>() {
                    @Override
                    public void coGroup(Iterable<Tuple2<String, Integer>> first, Iterable<Tuple2<String, Integer>> second,
                            Collector<String> out) {
                        List<Integer> left = new ArrayList<>();
                        List<Integer> right = new ArrayList<>();
                        first.forEach(r -> left.add(r.f1));
                        second.forEach(r -> right.add(r.f1));
                        if (sorts) {
                            // which window's elements come first when windows merge depends on hashes
                            Collections.sort(left);
                            Collections.sort(right);
                        }
                        out.collect(left + " " + right);
                    }
                }, Types.STRING);
        OneInputStreamOperator<TaggedUnion<Tuple2<String, Integer>, Tuple2<String, Integer>>, String> operator =
                (OneInputStreamOperator) ((OneInputTransformation<?, ?>) stream.getTransformation()).getOperator();
        StringBuilder steps = new StringBuilder();
        try (KeyedOneInputStreamOperatorTestHarness<String, TaggedUnion<Tuple2<String, Integer>, Tuple2<String, Integer>>, String>
                harness = new KeyedOneInputStreamOperatorTestHarness<>(operator,
                        r -> r.isOne() ? r.getOne().f0 : r.getTwo().f0, Types.STRING)) {
            harness.open();
            long watermark = -20;
            for (int step = 0; step < 25; step++) {
                String what;
                if (random.nextInt(5) == 0) {
                    watermark = Math.max(watermark, step - 4L + random.nextInt(5));
                    harness.processWatermark(new Watermark(watermark));
                    what = "\"watermark\", null, " + watermark;
                } else {
                    Tuple2<String, Integer> record = Tuple2.of(KEYS[random.nextInt(2)], step);
                    boolean isOne = random.nextBoolean();
                    long time = step - 5L + random.nextInt(10);
                    harness.processElement(
                            isOne ? TaggedUnion.one(record) : TaggedUnion.two(record), time);
                    what = "\"element\", [" + (isOne ? 0 : 1) + ", [\"" + record.f0 + "\", " + step + "]], " + time;
                }
                steps.append(step == 0 ? "" : ", ").append("[").append(what).append(", ")
                        .append(taken(harness.getOutput())).append("]");
                harness.getOutput().clear();
            }
        }
        return "{\"kind\": \"co_group\", \"window\": " + assigner.f1 + ", \"trigger\": " + trigger.f1 + ", \"lateness\": "
                + lateness + ", \"steps\": [" + steps + "]}";
    }

    static Tuple2<Evictor<Object, ?>, String> newEvictor(Random random, boolean leavesSome, boolean inAnyOrder) {
        boolean after = random.nextBoolean();
        long limit = random.nextInt(4) + (leavesSome ? 1 : 0);
        long isAfter = after ? 1 : 0;
        switch (inAnyOrder ? 1 : random.nextInt(3)) {
            case 0:
                return Tuple2.of((Evictor) CountEvictor.of(limit, after), describe("CountEvictor", limit, isAfter));
            case 1:
                return Tuple2.of((Evictor) TimeEvictor.of(Duration.ofMillis(limit + 1), after),
                        describe("TimeEvictor", limit + 1, isAfter));
            default:
                DeltaFunction<Tuple2<String, Integer>> delta = (one, last) -> Math.abs(one.f1 % 7 - last.f1 % 7);
                return Tuple2.of((Evictor) DeltaEvictor.of((double) limit, (DeltaFunction) delta, after),
                        describe("DeltaEvictor", limit, isAfter));
        }
    }

    static String evictor(Random random) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        Tuple2<WindowAssigner<Object, ?>, String> assigner = assigner(random);
        Tuple2<Trigger<Object, ?>, String> trigger = trigger(random, assigner.f1.contains("Global"));
        String[] functions = {"list", "reduce", "aggregate"};
        boolean sorts = assigner.f1.contains("Session");
        String function = functions[sorts ? 0 : random.nextInt(3)];
        // a reduce of no elements is null, which the harness cannot copy
        Tuple2<Evictor<Object, ?>, String> evictor = newEvictor(random, function.equals("reduce"), sorts);
        int lateness = random.nextInt(3) * 2;
        WindowedStream<Tuple2<String, Integer>, String, Window> windows = (WindowedStream) env.fromData(Tuple2.of("a", 1))
                .keyBy(r -> r.f0, Types.STRING).window((WindowAssigner) assigner.f0);
        windows = windows.evictor((Evictor) evictor.f0).allowedLateness(Duration.ofMillis(lateness));
        if (trigger.f0 != null) {
            windows = windows.trigger((Trigger) trigger.f0);
        }
        DataStream<?> stream;
        if (function.equals("list")) {
            stream = windows.apply(new WindowFunction<Tuple2<String, Integer>, String, String, Window>() {
                @Override
                public void apply(String key, Window window, Iterable<Tuple2<String, Integer>> inputs, Collector<String> out) {
                    List<Integer> values = new ArrayList<>();
                    inputs.forEach(r -> values.add(r.f1));
                    if (sorts) {
                        Collections.sort(values);
                    }
                    out.collect(key + " " + values);
                }
            }, Types.STRING);
        } else if (function.equals("reduce")) {
            stream = windows.reduce((one, other) -> Tuple2.of(one.f0, one.f1 * 3 + other.f1));
        } else {
            stream = windows.aggregate(new AggregateFunction<Tuple2<String, Integer>, Integer, String>() {
                @Override
                public Integer createAccumulator() {
                    return 1;
                }

                @Override
                public Integer add(Tuple2<String, Integer> value, Integer accumulator) {
                    return accumulator * 3 + value.f1;
                }

                @Override
                public String getResult(Integer accumulator) {
                    return "result " + accumulator;
                }

                @Override
                public Integer merge(Integer one, Integer other) {
                    throw new UnsupportedOperationException();
                }
            }, Types.INT, Types.STRING);
        }
        OneInputStreamOperator<Tuple2<String, Integer>, Object> operator =
                (OneInputStreamOperator) ((OneInputTransformation<?, ?>) stream.getTransformation()).getOperator();
        StringBuilder steps = new StringBuilder();
        try (KeyedOneInputStreamOperatorTestHarness<String, Tuple2<String, Integer>, Object> harness =
                new KeyedOneInputStreamOperatorTestHarness<>(operator, r -> r.f0, Types.STRING)) {
            harness.open();
            long watermark = -20;
            for (int step = 0; step < 25; step++) {
                String what;
                if (random.nextInt(5) == 0) {
                    watermark = Math.max(watermark, step - 4L + random.nextInt(5));
                    harness.processWatermark(new Watermark(watermark));
                    what = "\"watermark\", null, " + watermark;
                } else {
                    Tuple2<String, Integer> record = Tuple2.of(KEYS[random.nextInt(2)], step);
                    long time = step - 5L + random.nextInt(10);
                    harness.processElement(record, time);
                    what = "\"element\", [\"" + record.f0 + "\", " + step + "], " + time;
                }
                steps.append(step == 0 ? "" : ", ").append("[").append(what).append(", ")
                        .append(taken(harness.getOutput())).append("]");
                harness.getOutput().clear();
            }
        }
        return "{\"kind\": \"evictor\", \"window\": " + assigner.f1 + ", \"trigger\": " + trigger.f1 + ", \"evictor\": "
                + evictor.f1 + ", \"lateness\": " + lateness + ", \"function\": \"" + function + "\", \"steps\": [" + steps + "]}";
    }
}
