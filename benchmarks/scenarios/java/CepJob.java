import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternSelectFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

/** The job of benchmarks/scenarios/cep.py; prints the seconds that each of the given numbers of records takes. */
public class CepJob {
    /** A payment with a card. */
    public static class Payment {
        public int card;
        public int amount;
        public int country;
        public long time;

        public Payment() {}

        Payment(long number, long half, int keys) {
            long hash = (number * 2654435761L) & 0xffffffffL;
            hash ^= hash >> 15;
            card = (int) (hash % keys);
            amount = (int) ((hash >> 4) % 10_007);
            country = (int) ((hash >> 9) % 53);
            time = (number % half) / 50;
        }
    }

    public static void main(String[] args) throws Exception {
        int keys = Integer.parseInt(args[0]);
        boolean matches = Boolean.parseBoolean(args[1]);
        long within = Long.parseLong(args[2]);
        for (int i = 3; i < args.length; i++) {
            long begin = System.nanoTime();
            run(Long.parseLong(args[i]), keys, matches, within);
            System.out.println((System.nanoTime() - begin) / 1e9);
        }
        System.exit(0);
    }

    static void run(long records, int keys, boolean matches, long within) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setParallelism(2);
        long half = records / 2;
        DataStream<Payment> payments =
                env.fromSequence(0, records - 1)
                        .map(number -> new Payment(number, half, keys))
                        .returns(Payment.class)
                        .assignTimestampsAndWatermarks(
                                WatermarkStrategy.<Payment>forMonotonousTimestamps()
                                        .withTimestampAssigner((payment, previous) -> payment.time));
        Pattern<Payment, ?> pattern =
                Pattern.<Payment>begin("high")
                        .where(SimpleCondition.of(payment -> payment.amount > 9_900))
                        .followedBy("foreign")
                        .where(SimpleCondition.of(payment -> matches && payment.country == 0))
                        .within(Duration.ofMillis(within));
        CEP.pattern(payments.keyBy(payment -> payment.card), pattern)
                .select(
                        new PatternSelectFunction<Payment, Integer>() {
                            @Override
                            public Integer select(Map<String, List<Payment>> match) {
                                return match.get("foreign").get(0).card;
                            }
                        })
                .sinkTo(new DiscardingSink<>());
        env.execute("bench");
    }
}
