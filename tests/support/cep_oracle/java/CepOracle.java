import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.typeinfo.BasicTypeInfo;
import org.apache.flink.api.common.typeutils.base.StringSerializer;
import org.apache.flink.cep.EventComparator;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.functions.TimedOutPartialMatchHandler;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.nfa.aftermatch.SkipToFirstStrategy;
import org.apache.flink.cep.nfa.aftermatch.SkipToLastStrategy;
import org.apache.flink.cep.nfa.compiler.NFACompiler;
import org.apache.flink.cep.operator.CepOperator;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.WithinType;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.util.KeyedOneInputStreamOperatorTestHarness;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/**
 * Reads one case of a pattern and a stream per line as JSON, runs it with flink-cep, and prints what it emits.
 *
 * An event is the text "type value number". Cases are described in tests/support/cep_oracle/cases.py.
 */
public class CepOracle {
    static final ObjectMapper JSON = new ObjectMapper();
    static final OutputTag<String> LATE = new OutputTag<String>("late") {};

    public static void main(String[] args) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode description = JSON.readTree(line);
            ObjectNode result = JSON.createObjectNode();
            ArrayNode emitted = result.putArray("emitted");
            try {
                Pattern<String, ?> pattern = pattern(description.get("pattern"), true);
                run(description, pattern, emitted);
            } catch (Throwable error) {
                Throwable cause = error;
                while (cause.getCause() != null) {
                    cause = cause.getCause();
                }
                result.put("error", cause.getClass().getSimpleName() + ": " + cause.getMessage());
            }
            out.println(JSON.writeValueAsString(result));
            out.flush();
        }
        System.exit(0);
    }

    static void run(JsonNode description, Pattern<String, ?> pattern, ArrayNode emitted) throws Exception {
        boolean timeouts = description.path("timeouts").asBoolean();
        boolean processingTime = description.path("processing_time").asBoolean();
        boolean compares = description.path("comparator").asBoolean();
        PatternProcessFunction<String, String> function = timeouts ? new WithTimeouts(emitted) : new Matches(emitted);
        CepOperator<String, Integer, String> operator = new CepOperator<>(
                StringSerializer.INSTANCE, processingTime,
                NFACompiler.compileFactory(pattern, timeouts),
                compares ? (EventComparator<String>) (a, b) -> Integer.compare(value(a), value(b)) : null,
                pattern.getAfterMatchSkipStrategy(), function, LATE);
        try (KeyedOneInputStreamOperatorTestHarness<Integer, String, String> harness =
                new KeyedOneInputStreamOperatorTestHarness<>(operator, e -> 0, BasicTypeInfo.INT_TYPE_INFO)) {
            harness.open();
            int late = 0;
            for (JsonNode step : description.get("steps")) {
                switch (step.get(0).asText()) {
                    case "e":
                        harness.processElement(new StreamRecord<>(step.get(2).asText(), step.get(1).asLong()));
                        break;
                    case "w":
                        harness.processWatermark(new Watermark(step.get(1).asLong()));
                        break;
                    default:
                        harness.setProcessingTime(step.get(1).asLong());
                }
                if (harness.getSideOutput(LATE) != null && harness.getSideOutput(LATE).size() > late) {
                    late++;
                    emitted.addArray().add("late").add(step.get(2).asText());
                }
            }
        }
    }

    static class Matches extends PatternProcessFunction<String, String> {
        transient ArrayNode emitted;

        Matches(ArrayNode emitted) {
            this.emitted = emitted;
        }

        @Override
        public void processMatch(Map<String, List<String>> match, Context ctx, Collector<String> out) {
            add("match", match, ctx.timestamp());
        }

        void add(String kind, Map<String, List<String>> match, long timestamp) {
            ArrayNode row = emitted.addArray().add(kind).add(timestamp);
            for (Map.Entry<String, List<String>> each : match.entrySet()) {
                ArrayNode stage = row.addArray().add(each.getKey());
                each.getValue().forEach(event -> stage.add(number(event)));
            }
        }
    }

    static class WithTimeouts extends Matches implements TimedOutPartialMatchHandler<String> {
        WithTimeouts(ArrayNode emitted) {
            super(emitted);
        }

        @Override
        public void processTimedOutMatch(Map<String, List<String>> match, Context ctx) {
            add("timeout", match, ctx.timestamp());
        }
    }

    static Pattern<String, ?> pattern(JsonNode description, boolean outermost) {
        Pattern<String, String> pattern = null;
        AfterMatchSkipStrategy strategy = strategy(description.get("skip"));
        for (JsonNode stage : description.get("stages")) {
            String name = stage.path("name").asText();
            JsonNode group = stage.get("group");
            @SuppressWarnings("unchecked")
            Pattern<String, String> inner = group == null ? null : (Pattern<String, String>) pattern(group, false);
            switch (stage.get("kind").asText()) {
                case "begin":
                    pattern = inner == null ? Pattern.<String>begin(name, strategy) : Pattern.begin(inner, strategy);
                    break;
                case "next":
                    pattern = inner == null ? pattern.next(name) : pattern.next(inner);
                    break;
                case "followed_by":
                    pattern = inner == null ? pattern.followedBy(name) : pattern.followedBy(inner);
                    break;
                case "followed_by_any":
                    pattern = inner == null ? pattern.followedByAny(name) : pattern.followedByAny(inner);
                    break;
                case "not_next":
                    pattern = pattern.notNext(name);
                    break;
                default:
                    pattern = pattern.notFollowedBy(name);
            }
            if (stage.has("where")) {
                pattern = pattern.where(condition(stage.get("where")));
            }
            if (stage.has("or")) {
                pattern = pattern.or(condition(stage.get("or")));
            }
            quantify(pattern, stage);
        }
        return pattern;
    }

    static void quantify(Pattern<String, String> pattern, JsonNode stage) {
        JsonNode times = stage.get("times");
        Duration window = stage.has("times_window") ? Duration.ofMillis(stage.get("times_window").asLong()) : null;
        if (times != null) {
            int least = times.get(0).asInt();
            if (times.size() == 1) {
                pattern.times(least, window);
            } else if (times.get(1).isNull()) {
                pattern.timesOrMore(least, window);
            } else {
                pattern.times(least, times.get(1).asInt(), window);
            }
        }
        if (stage.path("optional").asBoolean()) {
            pattern.optional();
        }
        if (stage.path("greedy").asBoolean()) {
            pattern.greedy();
        }
        if (stage.path("consecutive").asBoolean()) {
            pattern.consecutive();
        }
        if (stage.path("combinations").asBoolean()) {
            pattern.allowCombinations();
        }
        if (stage.has("until")) {
            pattern.until(condition(stage.get("until")));
        }
        if (stage.has("within")) {
            pattern.within(Duration.ofMillis(stage.get("within").asLong()));
        }
        if (stage.has("within_previous")) {
            pattern.within(Duration.ofMillis(stage.get("within_previous").asLong()), WithinType.PREVIOUS_AND_CURRENT);
        }
    }

    static AfterMatchSkipStrategy strategy(JsonNode skip) {
        if (skip == null) {
            return AfterMatchSkipStrategy.noSkip();
        }
        boolean fails = skip.size() > 2 && skip.get(2).asBoolean();
        switch (skip.get(0).asText()) {
            case "next":
                return AfterMatchSkipStrategy.skipToNext();
            case "past_last":
                return AfterMatchSkipStrategy.skipPastLastEvent();
            case "first":
                SkipToFirstStrategy first = AfterMatchSkipStrategy.skipToFirst(skip.get(1).asText());
                return fails ? first.throwExceptionOnMiss() : first;
            case "last":
                SkipToLastStrategy last = AfterMatchSkipStrategy.skipToLast(skip.get(1).asText());
                return fails ? last.throwExceptionOnMiss() : last;
            default:
                return AfterMatchSkipStrategy.noSkip();
        }
    }

    static IterativeCondition<String> condition(JsonNode description) {
        String kind = description.get(0).asText();
        String text = description.get(1).asText();
        int limit = description.path(2).asInt();
        return new IterativeCondition<String>() {
            @Override
            public boolean filter(String event, Context<String> ctx) throws Exception {
                int count = 0;
                int sum = 0;
                int last = Integer.MIN_VALUE;
                switch (kind) {
                    case "type":
                        return text.indexOf(event.charAt(0)) >= 0;
                    case "value":
                        return text.indexOf(event.charAt(0)) >= 0 && value(event) > limit;
                    case "time":
                        return ctx.timestamp() % 2 == limit;
                    default:
                }
                for (String each : ctx.getEventsForPattern(text)) {
                    count++;
                    sum += value(each);
                    last = value(each);
                }
                switch (kind) {
                    case "count":
                        return count < limit;
                    case "sum":
                        return sum + value(event) < limit;
                    default:
                        return value(event) >= last;
                }
            }
        };
    }

    static int value(String event) {
        return Integer.parseInt(event.split(" ")[1]);
    }

    static int number(String event) {
        return Integer.parseInt(event.split(" ")[2]);
    }
}
