import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import org.apache.flink.api.connector.source.Boundedness;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.api.connector.source.SplitEnumerator;
import org.apache.flink.api.connector.source.SplitEnumeratorContext;
import org.apache.flink.api.connector.source.lib.util.IteratorSourceEnumerator;
import org.apache.flink.api.connector.source.lib.util.IteratorSourceReader;
import org.apache.flink.api.connector.source.lib.util.IteratorSourceSplit;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.connector.source.SourceProvider;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.factories.FactoryUtil;

/** The events of Firesteel's connector "nexmark" in Flink: every event is a function of its index. */
public class NexmarkTable implements DynamicTableSourceFactory {
    static final ConfigOption<Long> COUNT = ConfigOptions.key("count").longType().noDefaultValue();
    static final ConfigOption<Integer> RATE = ConfigOptions.key("rate").intType().noDefaultValue();
    static final ConfigOption<String> TEXTS = ConfigOptions.key("texts").stringType().noDefaultValue();

    @Override
    public String factoryIdentifier() {
        return "nexmark-index";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
        return Set.of(COUNT, RATE, TEXTS);
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
        return Set.of();
    }

    @Override
    public DynamicTableSource createDynamicTableSource(Context context) {
        FactoryUtil.TableFactoryHelper helper = FactoryUtil.createTableFactoryHelper(this, context);
        helper.validate();
        return new Scan(helper.getOptions().get(COUNT), helper.getOptions().get(RATE), helper.getOptions().get(TEXTS));
    }

    /** The table. */
    static class Scan implements ScanTableSource {
        final long count;
        final int rate;
        final String texts;

        Scan(long count, int rate, String texts) {
            this.count = count;
            this.rate = rate;
            this.texts = texts;
        }

        @Override
        public ChangelogMode getChangelogMode() {
            return ChangelogMode.insertOnly();
        }

        @Override
        public ScanRuntimeProvider getScanRuntimeProvider(ScanContext context) {
            return SourceProvider.of(new Events(count, rate, texts));
        }

        @Override
        public DynamicTableSource copy() {
            return new Scan(count, rate, texts);
        }

        @Override
        public String asSummaryString() {
            return "nexmark-index";
        }
    }

    /** Every reader makes the events whose index has its own remainder. */
    static class Events implements Source<RowData, Split, Collection<Split>> {
        final long count;
        final int rate;
        final String texts;

        Events(long count, int rate, String texts) {
            this.count = count;
            this.rate = rate;
            this.texts = texts;
        }

        @Override
        public Boundedness getBoundedness() {
            return Boundedness.BOUNDED;
        }

        @Override
        public SplitEnumerator<Split, Collection<Split>> createEnumerator(SplitEnumeratorContext<Split> context) {
            int readers = context.currentParallelism();
            List<Split> splits = new ArrayList<>();
            for (int reader = 0; reader < readers; reader++) {
                splits.add(new Split(reader, readers, count, rate, texts));
            }
            return new IteratorSourceEnumerator<>(context, splits);
        }

        @Override
        public SplitEnumerator<Split, Collection<Split>> restoreEnumerator(
                SplitEnumeratorContext<Split> context, Collection<Split> splits) {
            return new IteratorSourceEnumerator<>(context, splits);
        }

        @Override
        public SourceReader<RowData, Split> createReader(SourceReaderContext context) {
            return new IteratorSourceReader<>(context);
        }

        @Override
        public SimpleVersionedSerializer<Split> getSplitSerializer() {
            return new Serializer<>();
        }

        @Override
        public SimpleVersionedSerializer<Collection<Split>> getEnumeratorCheckpointSerializer() {
            return new Serializer<>();
        }
    }

    /** Java's own serialization. */
    static class Serializer<T> implements SimpleVersionedSerializer<T> {
        @Override
        public int getVersion() {
            return 1;
        }

        @Override
        public byte[] serialize(T value) throws java.io.IOException {
            return org.apache.flink.util.InstantiationUtil.serializeObject(value);
        }

        @Override
        public T deserialize(int version, byte[] bytes) throws java.io.IOException {
            try {
                return org.apache.flink.util.InstantiationUtil.deserializeObject(
                        bytes, NexmarkTable.class.getClassLoader());
            } catch (ClassNotFoundException error) {
                throw new java.io.IOException(error);
            }
        }
    }

    /** Indexes from one on, in steps. */
    static class Split implements IteratorSourceSplit<RowData, Generator>, Serializable {
        final long position;
        final int step;
        final long count;
        final int rate;
        final String texts;

        Split(long position, int step, long count, int rate, String texts) {
            this.position = position;
            this.step = step;
            this.count = count;
            this.rate = rate;
            this.texts = texts;
        }

        @Override
        public String splitId() {
            return Long.toString(position % step);
        }

        @Override
        public Generator getIterator() {
            return new Generator(this);
        }

        @Override
        public IteratorSourceSplit<RowData, Generator> getUpdatedSplitForIterator(Generator iterator) {
            return new Split(iterator.next, step, count, rate, texts);
        }
    }

    /** Makes events. */
    static class Generator implements Iterator<RowData> {
        static final long GOLDEN = 0x9E3779B97F4A7C15L;
        static final int TOTAL = 50;
        static final long START_MS = 1_704_067_200_000L;
        final Split split;
        long next;
        final double msPerEvent;
        final long span;
        final long seed = mix(0);
        final String[] firstNames;
        final String[] lastNames;
        final String[] domains;
        final StringData[] cities;
        final StringData[] states;
        final String[] words;
        final StringData[] items;
        final StringData[] channels;
        final StringData[] urls;
        final StringData[] personExtras;
        final StringData[] auctionExtras;
        final StringData[] bidExtras;
        final long[] prices;

        Generator(Split split) {
            this.split = split;
            this.next = split.position;
            this.msPerEvent = 1000.0 / split.rate;
            this.span = Math.max((long) (100 * (double) TOTAL / 3 * msPerEvent), 1);
            firstNames = lines("first_names");
            lastNames = lines("last_names");
            domains = lines("domains");
            cities = texts("cities");
            states = texts("states");
            words = lines("words");
            items = texts("words");
            channels = texts("channels");
            urls = texts("urls");
            personExtras = texts("person_extras");
            auctionExtras = texts("auction_extras");
            bidExtras = texts("bid_extras");
            String[] numbers = lines("prices");
            prices = new long[numbers.length];
            for (int index = 0; index < numbers.length; index++) {
                prices[index] = Long.parseLong(numbers[index]);
            }
        }

        String[] lines(String name) {
            try {
                Path path = Paths.get(split.texts, name + ".txt");
                return Files.readString(path, StandardCharsets.UTF_8).split("\n", -1);
            } catch (java.io.IOException error) {
                throw new java.io.UncheckedIOException(error);
            }
        }

        StringData[] texts(String name) {
            String[] lines = lines(name);
            StringData[] found = new StringData[lines.length];
            for (int index = 0; index < lines.length; index++) {
                found[index] = StringData.fromString(lines[index]);
            }
            return found;
        }

        static long mix(long value) {
            long bits = value + GOLDEN;
            bits ^= bits >>> 30;
            bits *= 0xBF58476D1CE4E5B9L;
            bits ^= bits >>> 27;
            bits *= 0x94D049BB133111EBL;
            return bits ^ bits >>> 31;
        }

        static int below(long bits, int bound) {
            return (int) Long.remainderUnsigned(bits, bound);
        }

        static long belowLong(long bits, long bound) {
            return Long.remainderUnsigned(bits, bound);
        }

        @Override
        public boolean hasNext() {
            return next < split.count;
        }

        @Override
        public RowData next() {
            long number = next;
            next += split.step;
            long random = mix(number ^ seed);
            long at = START_MS + (long) (number * msPerEvent);
            int rest = (int) (number % TOTAL);
            GenericRowData row = new GenericRowData(4);
            if (rest < 1) {
                row.setField(0, 0);
                row.setField(1, person(number, random, at));
            } else if (rest < 4) {
                row.setField(0, 1);
                row.setField(2, auction(number, random, at));
            } else {
                row.setField(0, 2);
                row.setField(3, bid(number, random, at));
            }
            return row;
        }

        long lastPerson(long number) {
            return number / TOTAL;
        }

        long lastAuction(long number) {
            long rounds = number / TOTAL;
            long done = number % TOTAL - 1;
            return done < 0 ? rounds * 3 - 1 : rounds * 3 + Math.min(done, 2);
        }

        long somePerson(long number, long random) {
            long last = lastPerson(number);
            long active = Math.min(last, 1000);
            return last - active + belowLong(random, active + 10) + 1000;
        }

        StringData extra(StringData[] extras, long random) {
            return extras.length == 1 ? extras[0] : extras[(int) (random * GOLDEN >>> 52)];
        }

        GenericRowData person(long number, long random, long at) {
            String first = firstNames[below(random, firstNames.length)];
            String last = lastNames[below(random >>> 8, lastNames.length)];
            long card = random >>> 4;
            StringBuilder digits = new StringBuilder();
            for (int shift : new int[] {0, 13, 26, 39}) {
                String part = String.format("%04d", card >>> shift & 0x1FFF);
                digits.append(digits.length() == 0 ? "" : " ").append(part.substring(part.length() - 4));
            }
            String address = first + "." + last + "@" + domains[below(random, 3)];
            return GenericRowData.of(
                    lastPerson(number) + 1000,
                    StringData.fromString(first + " " + last),
                    StringData.fromString(address.toLowerCase()),
                    StringData.fromString(digits.toString()),
                    cities[below(random >>> 16, cities.length)],
                    states[below(random >>> 24, states.length)],
                    TimestampData.fromEpochMillis(at),
                    extra(personExtras, random));
        }

        GenericRowData auction(long number, long random, long at) {
            long seller =
                    below(random, 4) != 0
                            ? lastPerson(number) / 100 * 100 + 1000
                            : somePerson(number, random >>> 8);
            long initial = prices[(int) (random >>> 16 & 0xFFFF)];
            return GenericRowData.of(
                    lastAuction(number) + 1000,
                    items[below(random >>> 4, items.length)],
                    StringData.fromString(
                            words[below(random >>> 12, words.length)] + " " + words[below(random >>> 20, words.length)]),
                    initial,
                    initial + prices[(int) (random >>> 28 & 0xFFFF)],
                    TimestampData.fromEpochMillis(at),
                    TimestampData.fromEpochMillis(at + 1 + belowLong(random >>> 36, 2 * span)),
                    seller,
                    1000L + below(random >>> 44, 5),
                    extra(auctionExtras, random));
        }

        GenericRowData bid(long number, long random, long at) {
            long last = Math.max(lastAuction(number), 0);
            long auction;
            if (below(random, 2) != 0) {
                auction = last / 100 * 100 + 1000;
            } else {
                long first = Math.max(last - 100, 0);
                auction = first + belowLong(random >>> 8, last - first + 11) + 1000;
            }
            long bidder =
                    below(random >>> 24, 4) != 0
                            ? lastPerson(number) / 100 * 100 + 1001
                            : somePerson(number, random >>> 32);
            int channel = (random >>> 44 & 1) != 0 ? below(random >>> 4, 4) : 4 + below(random >>> 45, 10_000);
            return GenericRowData.of(
                    auction,
                    bidder,
                    prices[(int) (random >>> 20 & 0xFFFF)],
                    channels[channel],
                    urls[channel],
                    TimestampData.fromEpochMillis(at),
                    extra(bidExtras, random));
        }
    }
}
