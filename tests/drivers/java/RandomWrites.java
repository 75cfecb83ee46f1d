import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.UUID;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypeChecks;
import org.apache.paimon.types.DecimalType;
import org.apache.paimon.types.RowKind;
import org.apache.paimon.types.RowType;

/** A seed and a key space -> one commit of rows made inside the JVM. Same request, same rows. */
final class RandomWrites {
    private static final long EPOCH_MICROS = 1_700_000_000_000_000L;
    private static final int EPOCH_DAY = 19_675;
    private static final int LATENESS = 3_000_000;
    private static final int UUID_LENGTH = 36;
    /** Odd, so that distinct numbers stay distinct: the golden ratio's digits. */
    private static final long SCATTER = 0x9E3779B97F4A7C15L;

    private final List<DataField> fields;
    private final Set<String> partitionKeys;
    private final Set<String> keys;
    private final Set<String> sequence;
    private final String widestKey;
    private final int partitions;
    private final long version;
    private final double nulls;

    private RandomWrites(FileStoreTable table, JsonNode request) {
        fields = table.rowType().getFields();
        partitionKeys = new HashSet<>(table.partitionKeys());
        List<String> trimmed = table.schema().trimmedPrimaryKeys();
        keys = new HashSet<>(trimmed);
        // One key column carries the whole key number, so that distinct numbers are distinct keys.
        widestKey = trimmed.stream().filter(name -> isWide(table.rowType(), name)).findFirst().orElse(null);
        sequence = new HashSet<>(Arrays.asList(table.options().getOrDefault("sequence.field", "").split(",")));
        partitions = request.path("partitions").asInt(4);
        version = request.path("version").asLong(request.required("seed").asLong());
        nulls = request.path("null_share").asDouble(0);
    }

    static JsonNode write(JsonNode request) throws Exception {
        FileStoreTable table = Writes.forWriting(request);
        RandomWrites rows = new RandomWrites(table, request);
        long count = request.required("rows").asLong();
        long keyspace = request.path("keyspace").asLong(count);
        boolean sequential = request.path("sequential").asBoolean(false);
        long step = request.path("step").asLong(1);
        int deleteEvery = request.path("delete_every").asInt(0);
        SplittableRandom random = new SplittableRandom(request.required("seed").asLong());
        return Writes.commit(
                table,
                request,
                write -> {
                    for (long i = 0; i < count; i++) {
                        GenericRow row = rows.row(sequential ? i * step : random.nextLong(keyspace), random);
                        boolean delete = deleteEvery > 0 && i % deleteEvery == deleteEvery - 1;
                        row.setRowKind(delete ? RowKind.DELETE : RowKind.INSERT);
                        write.write(row);
                    }
                });
    }

    private static boolean isWide(RowType type, String name) {
        switch (type.getField(name).type().getTypeRoot()) {
            case BIGINT:
            case INTEGER:
            case CHAR:
            case VARCHAR:
            case TIMESTAMP_WITHOUT_TIME_ZONE:
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return true;
            default:
                return false;
        }
    }

    private GenericRow row(long key, SplittableRandom random) {
        GenericRow row = new GenericRow(fields.size());
        for (int i = 0; i < fields.size(); i++) {
            row.setField(i, value(fields.get(i), key, random));
        }
        return row;
    }

    private Object value(DataField field, long key, SplittableRandom random) {
        DataType type = field.type();
        if (partitionKeys.contains(field.name())) {
            return number(type, Math.floorMod(key, partitions), "p");
        }
        if (keys.contains(field.name())) {
            return number(type, field.name().equals(widestKey) ? key : key % 97, "k");
        }
        if (sequence.contains(field.name())) {
            return number(type, version * 1_000_000 + random.nextInt(LATENESS), "s");
        }
        if (nulls > 0 && type.isNullable() && random.nextDouble() < nulls) {
            return null;
        }
        return random(type, key, random);
    }

    private Object random(DataType type, long key, SplittableRandom random) {
        switch (type.getTypeRoot()) {
            case CHAR:
            case VARCHAR:
                long noise = random.nextLong();
                return BinaryString.fromString(
                        "note " + key + " v" + version + " " + Long.toHexString(noise) + Long.toHexString(~noise));
            case FLOAT:
                return (float) random.nextDouble();
            case DOUBLE:
                return random.nextDouble();
            default:
                return number(type, random.nextInt(1_000_000), "r");
        }
    }

    private static Object number(DataType type, long number, String prefix) {
        switch (type.getTypeRoot()) {
            case BOOLEAN:
                return number % 2 == 1;
            case TINYINT:
                return (byte) number;
            case SMALLINT:
                return (short) number;
            case INTEGER:
                return (int) number;
            case BIGINT:
                return number;
            case FLOAT:
                return (float) number;
            case DOUBLE:
                return (double) number;
            case DECIMAL:
                DecimalType decimal = (DecimalType) type;
                long bound = (long) Math.pow(10, Math.min(decimal.getPrecision(), 18));
                BigDecimal value = BigDecimal.valueOf(number % bound, decimal.getScale());
                return Decimal.fromBigDecimal(value, decimal.getPrecision(), decimal.getScale());
            case CHAR:
            case VARCHAR:
                boolean isUuid = DataTypeChecks.getLength(type) == UUID_LENGTH;
                return BinaryString.fromString(
                        isUuid ? new UUID(number * SCATTER, number).toString() : prefix + number);
            case BINARY:
            case VARBINARY:
                return Long.toHexString(number).getBytes(StandardCharsets.US_ASCII);
            case DATE:
                return (int) (EPOCH_DAY + number);
            case TIME_WITHOUT_TIME_ZONE:
                return (int) Math.floorMod(number, 86_400_000L);
            case TIMESTAMP_WITHOUT_TIME_ZONE:
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                // Whole milliseconds: exact at every precision from 3 up.
                return Timestamp.fromMicros(EPOCH_MICROS + number * 1_000L);
            default:
                throw new UnsupportedOperationException("type: expected a primitive, found " + type);
        }
    }
}
