import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.GenericArray;
import org.apache.paimon.data.GenericMap;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalArray;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.fs.Path;
import org.apache.paimon.fs.local.LocalFileIO;
import org.apache.paimon.manifest.ManifestEntry;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.reader.RecordReaderIterator;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.schema.SchemaManager;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.FileStoreTableFactory;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.BatchTableWrite;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.table.source.Split;
import org.apache.paimon.types.ArrayType;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypeRoot;
import org.apache.paimon.types.DataTypes;
import org.apache.paimon.types.DecimalType;
import org.apache.paimon.types.LocalZonedTimestampType;
import org.apache.paimon.types.MapType;
import org.apache.paimon.types.MultisetType;
import org.apache.paimon.types.RowKind;
import org.apache.paimon.types.RowType;
import org.apache.paimon.types.TimestampType;

/** One command per line in, one answer per line out. Uses only what Paimon has had from 0.5 to 2.0; one source for all. */
public final class Release {
    public static void main(String[] args) throws Exception {
        PrintStream replies = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
        System.setOut(System.err);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            String answer;
            try {
                answer = "OK\t" + answer(line.split("\t", -1));
            } catch (Throwable failure) {
                StringWriter trace = new StringWriter();
                failure.printStackTrace(new PrintWriter(trace));
                answer = "ERROR\t" + trace.toString().replace("\n", " | ").replace("\t", " ");
            }
            replies.println(answer);
            replies.flush();
        }
        System.exit(0);
    }

    private static String answer(String[] words) throws Exception {
        Path path = new Path(words[1]);
        switch (words[0]) {
            case "create":
                return create(path, words[2], names(words[3]), names(words[4]), options(words[5]));
            case "write":
                return write(open(path), words[2], Integer.parseInt(words[3]), Integer.parseInt(words[4]), words[5]);
            case "compact":
                return compact(open(path), Boolean.parseBoolean(words[2]));
            case "read":
                return read(open(path).copy(options(words[2])));
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static String create(
            Path path, String columns, List<String> primary, List<String> partition, Map<String, String> options)
            throws Exception {
        Schema.Builder schema = Schema.newBuilder();
        for (String column : columns.split(";")) {
            String[] parts = column.split(":");
            boolean isKey = primary.contains(parts[0]) || partition.contains(parts[0]);
            schema.column(parts[0], isKey ? type(parts[1]).copy(false) : type(parts[1]));
        }
        schema.primaryKey(primary).partitionKeys(partition).options(options);
        new SchemaManager(LocalFileIO.create(), path).createTable(schema.build());
        return "created";
    }

    private static FileStoreTable open(Path path) {
        return FileStoreTableFactory.create(LocalFileIO.create(), path);
    }

    /** Rows of the ids from..to - 1; every value follows from the id and the text of the version. */
    private static String write(FileStoreTable table, String kind, int from, int to, String version) throws Exception {
        FileStoreTable plain = table.copy(Collections.singletonMap("write-only", "true"));
        BatchWriteBuilder builder = plain.newBatchWriteBuilder();
        RowType type = plain.rowType();
        try (BatchTableWrite write = builder.newWrite();
                BatchTableCommit commit = builder.newCommit()) {
            for (int id = from; id < to; id++) {
                GenericRow row = new GenericRow(rowKind(kind), type.getFieldCount());
                for (int i = 0; i < type.getFieldCount(); i++) {
                    row.setField(i, value(type.getFieldNames().get(i), type.getTypeAt(i), id, version));
                }
                write.write(row);
            }
            commit.commit(write.prepareCommit());
        }
        return "written";
    }

    private static String compact(FileStoreTable table, boolean full) throws Exception {
        FileStoreTable compacting = table.copy(Collections.singletonMap("write-only", "false"));
        Set<List<Object>> buckets = new LinkedHashSet<>();
        for (ManifestEntry entry : compacting.store().newScan().plan().files()) {
            buckets.add(Arrays.<Object>asList(entry.partition().copy(), entry.bucket()));
        }
        BatchWriteBuilder builder = compacting.newBatchWriteBuilder();
        try (BatchTableWrite write = builder.newWrite();
                BatchTableCommit commit = builder.newCommit()) {
            write.withIOManager(IOManager.create(System.getProperty("java.io.tmpdir")));
            for (List<Object> bucket : buckets) {
                write.compact((BinaryRow) bucket.get(0), (Integer) bucket.get(1), full);
            }
            commit.commit(write.prepareCommit());
        }
        return "compacted";
    }

    private static String read(FileStoreTable table) throws Exception {
        RowType type = table.rowType();
        ReadBuilder builder = table.newReadBuilder();
        List<String> rows = new ArrayList<>();
        for (Split split : builder.newScan().plan().splits()) {
            RecordReader<InternalRow> reader =
                    builder.newRead()
                            .withIOManager(IOManager.create(System.getProperty("java.io.tmpdir")))
                            .createReader(split);
            RecordReaderIterator<InternalRow> each = new RecordReaderIterator<>(reader);
            while (each.hasNext()) {
                rows.add(text(each.next(), type));
            }
            each.close();
        }
        Collections.sort(rows);
        return String.join("\t", rows);
    }

    private static RowKind rowKind(String text) {
        return Arrays.stream(RowKind.values()).filter(kind -> kind.shortString().equals(text)).findFirst().get();
    }

    private static Object value(String name, DataType type, int id, String version) {
        if (name.equals("id")) {
            return id;
        }
        if (name.equals("day")) {
            return BinaryString.fromString(id % 2 == 0 ? "2023-08-01" : "2023-08-02");
        }
        if (id % 7 == 3) {
            return null;
        }
        long salt = id * 31L + Math.floorMod(version.hashCode(), 1000);
        switch (type.getTypeRoot()) {
            case TINYINT:
                return (byte) (salt % 100);
            case SMALLINT:
                return (short) (salt % 20_000);
            case INTEGER:
            case DATE:
            case TIME_WITHOUT_TIME_ZONE:
                return (int) (salt % 20_000);
            case BIGINT:
                return salt * 1_000_003L;
            case DOUBLE:
                return salt / 8.0;
            case FLOAT:
                return salt / 4.0f;
            case BOOLEAN:
                return salt % 2 == 0;
            case CHAR:
                return BinaryString.fromString(String.valueOf(1000 + salt).substring(0, 4));
            case VARCHAR:
                return BinaryString.fromString(version + " " + id);
            case BINARY:
                return String.valueOf(1000 + salt).substring(0, 4).getBytes(StandardCharsets.UTF_8);
            case VARBINARY:
                return (version + id).getBytes(StandardCharsets.UTF_8);
            case DECIMAL:
                DecimalType decimal = (DecimalType) type;
                return Decimal.fromBigDecimal(
                        BigDecimal.valueOf(salt, decimal.getScale()), decimal.getPrecision(), decimal.getScale());
            case TIMESTAMP_WITHOUT_TIME_ZONE:
                return time(((TimestampType) type).getPrecision(), salt);
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return time(((LocalZonedTimestampType) type).getPrecision(), salt);
            case ARRAY:
                DataType element = ((ArrayType) type).getElementType();
                return element.getTypeRoot() == DataTypeRoot.INTEGER
                        ? new GenericArray(new Object[] {id, null, (int) (salt % 100)})
                        : new GenericArray(new Object[] {value(name, element, id, version)});
            case MAP:
                Object item = value(name, ((MapType) type).getValueType(), id, version);
                return new GenericMap(Collections.singletonMap(BinaryString.fromString("one"), item));
            case MULTISET:
                Object counted = value(name, ((MultisetType) type).getElementType(), id, version);
                return new GenericMap(Collections.singletonMap(counted, 2));
            case ROW:
                return GenericRow.of(value(name, ((RowType) type).getTypeAt(0), id, version));
            default:
                throw new UnsupportedOperationException(type.toString());
        }
    }

    /** With all the digits that the precision has room for. */
    private static Timestamp time(int precision, long salt) {
        int nanos = precision > 6 ? 456_789 : precision > 3 ? 456_000 : 0;
        return Timestamp.fromEpochMillis(1_690_000_000_000L + salt * 86_400_123L, nanos);
    }

    private static String text(InternalRow row, RowType type) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < type.getFieldCount(); i++) {
            text.append(i == 0 ? "" : ",");
            text.append(row.isNullAt(i) ? "null" : text(row, i, type.getTypeAt(i)));
        }
        return text.toString();
    }

    private static String text(InternalRow row, int i, DataType type) {
        switch (type.getTypeRoot()) {
            case INTEGER:
            case DATE:
                return String.valueOf(row.getInt(i));
            case BIGINT:
                return String.valueOf(row.getLong(i));
            case DOUBLE:
                return String.valueOf(row.getDouble(i));
            case FLOAT:
                return String.valueOf(row.getFloat(i));
            case BOOLEAN:
                return String.valueOf(row.getBoolean(i));
            case VARCHAR:
                return row.getString(i).toString();
            case VARBINARY:
                return Arrays.toString(row.getBinary(i)).replace(", ", " ");
            case DECIMAL:
                DecimalType decimal = (DecimalType) type;
                return row.getDecimal(i, decimal.getPrecision(), decimal.getScale()).toString();
            case TIMESTAMP_WITHOUT_TIME_ZONE:
                return row.getTimestamp(i, ((TimestampType) type).getPrecision()).toString();
            case ARRAY:
                InternalArray array = row.getArray(i);
                List<String> items = new ArrayList<>();
                for (int n = 0; n < array.size(); n++) {
                    items.add(array.isNullAt(n) ? "null" : String.valueOf(array.getInt(n)));
                }
                return items.toString().replace(", ", " ");
            default:
                throw new UnsupportedOperationException(type.toString());
        }
    }

    /** Types as Paimon spells them, times with local zone as TIMESTAMP_LTZ(n), and MAP&lt;STRING,T&gt; and ROW&lt;T&gt;. */
    private static DataType type(String text) {
        String[] words = text.replace(")", "").split("\\(");
        String[] sizes = words.length > 1 && !text.contains("<") ? words[1].split(",") : new String[] {"0"};
        int size = Integer.parseInt(sizes[0]);
        int open = text.indexOf('<');
        String part = open < 0 ? "" : text.substring(open + 1, text.length() - 1);
        switch (open < 0 ? words[0] : text.substring(0, open)) {
            case "TINYINT":
                return DataTypes.TINYINT();
            case "SMALLINT":
                return DataTypes.SMALLINT();
            case "INT":
                return DataTypes.INT();
            case "BIGINT":
                return DataTypes.BIGINT();
            case "STRING":
                return DataTypes.STRING();
            case "CHAR":
                return DataTypes.CHAR(size);
            case "DOUBLE":
                return DataTypes.DOUBLE();
            case "FLOAT":
                return DataTypes.FLOAT();
            case "BOOLEAN":
                return DataTypes.BOOLEAN();
            case "DATE":
                return DataTypes.DATE();
            case "TIME":
                return DataTypes.TIME(size);
            case "BYTES":
                return DataTypes.BYTES();
            case "BINARY":
                return DataTypes.BINARY(size);
            case "DECIMAL":
                return DataTypes.DECIMAL(size, Integer.parseInt(sizes[1]));
            case "TIMESTAMP":
                return DataTypes.TIMESTAMP(size);
            case "TIMESTAMP_LTZ":
                return DataTypes.TIMESTAMP_WITH_LOCAL_TIME_ZONE(size);
            case "ARRAY":
                return new ArrayType(type(part));
            case "MAP":
                return new MapType(DataTypes.STRING().notNull(), type(part.substring("STRING,".length())));
            case "MULTISET":
                return new MultisetType(type(part).notNull());
            case "ROW":
                return DataTypes.ROW(DataTypes.FIELD(900, "part", type(part)));
            default:
                throw new UnsupportedOperationException(text);
        }
    }

    private static List<String> names(String text) {
        return text.isEmpty() ? new ArrayList<>() : Arrays.asList(text.split(","));
    }

    private static Map<String, String> options(String text) {
        Map<String, String> options = new LinkedHashMap<>();
        for (String option : text.split(";")) {
            if (!option.isEmpty()) {
                options.put(option.substring(0, option.indexOf('=')), option.substring(option.indexOf('=') + 1));
            }
        }
        return options;
    }

    private Release() {}
}
