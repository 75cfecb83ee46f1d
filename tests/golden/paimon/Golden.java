// Writes the golden files beside it, with Paimon Java 2.0.0 and a JDK 17. From the repository root, in one command:
//
//   mvn -q dependency:get -Dtransitive=false -Dartifact=org.apache.paimon:paimon-flink-2.0:2.0.0 && \
//   java -Duser.timezone=UTC -cp "$HOME/.m2/repository/org/apache/paimon/paimon-flink-2.0/2.0.0/paimon-flink-2.0-2.0.0.jar:$(
//     python -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')/jars/*" \
//     tests/golden/paimon/Golden.java tests/golden/paimon
//
// Rows, vectors and paths come out the same every time; the manifests carry fresh names and times, which
// manifests.json records as Paimon itself reads them back.

import org.apache.paimon.catalog.*;
import org.apache.paimon.data.*;
import org.apache.paimon.data.serializer.InternalRowSerializer;
import org.apache.paimon.deletionvectors.*;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.fs.Path;
import org.apache.paimon.fs.local.LocalFileIO;
import org.apache.paimon.index.*;
import org.apache.paimon.manifest.*;
import org.apache.paimon.options.*;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.table.*;
import org.apache.paimon.table.sink.*;
import org.apache.paimon.types.*;
import org.apache.paimon.utils.*;
import java.math.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;

public class Golden {
  static java.nio.file.Path out;

  public static void main(String[] args) throws Exception {
    out = java.nio.file.Path.of(args[0]);
    rows();
    vectors();
    paths();
    manifests();
  }

  // ---- values: the text is the type's canonical form, which the tests read back ----

  static DataType type(String text) {
    return DataTypeJsonParser.parseAtomicTypeSQLString(text);
  }

  static Object value(DataType t, String s) {
    if (s == null) return null;
    switch (t.getTypeRoot()) {
      case BOOLEAN: return Boolean.parseBoolean(s);
      case TINYINT: return Byte.parseByte(s);
      case SMALLINT: return Short.parseShort(s);
      case INTEGER: case DATE: case TIME_WITHOUT_TIME_ZONE: return Integer.parseInt(s);
      case BIGINT: return Long.parseLong(s);
      case FLOAT: return Float.parseFloat(s);
      case DOUBLE: return Double.parseDouble(s);
      case DECIMAL: {
        DecimalType d = (DecimalType) t;
        return Decimal.fromBigDecimal(new BigDecimal(s), d.getPrecision(), d.getScale());
      }
      case CHAR: case VARCHAR: return BinaryString.fromString(s);
      case BINARY: case VARBINARY: return HexFormat.of().parseHex(s);
      default: {
        BigInteger[] parts = new BigInteger(s).divideAndRemainder(BigInteger.valueOf(1_000_000));
        boolean before = parts[1].signum() < 0;
        long millis = parts[0].longValueExact() - (before ? 1 : 0);
        return Timestamp.fromEpochMillis(millis, parts[1].intValue() + (before ? 1_000_000 : 0));
      }
    }
  }

  static GenericRow row(List<DataType> types, List<String> values) {
    GenericRow row = new GenericRow(types.size());
    for (int i = 0; i < types.size(); i++) row.setField(i, value(types.get(i), values.get(i)));
    return row;
  }

  static byte[] bytes(List<DataType> types, GenericRow row) {
    return SerializationUtils.serializeBinaryRow(
        new InternalRowSerializer(types.toArray(new DataType[0])).toBinaryRow(row).copy());
  }

  static String hex(byte[] bytes) {
    return HexFormat.of().formatHex(bytes);
  }

  static void json(String name, Object document) throws Exception {
    Files.writeString(out.resolve(name), JsonSerdeUtil.toJson(document) + "\n");
  }

  // ---- BinaryRow ----

  static final List<Object> ROWS = new ArrayList<>();

  static void add(List<String> types, String... values) {
    List<DataType> parsed = types.stream().map(Golden::type).toList();
    byte[] data = bytes(parsed, row(parsed, Arrays.asList(values)));
    Map<String, Object> item = new LinkedHashMap<>();
    item.put("types", types);
    item.put("values", Arrays.asList(values));
    item.put("hex", hex(data));
    ROWS.add(item);
  }

  static void each(String type, String... values) {
    for (String value : values) add(List.of(type), value);
    add(List.of(type), (String) null);
    // Between neighbours, so that offsets and alignment are seen too.
    add(List.of("STRING", type, "STRING"), "a string longer than a slot", values[0], "another longer string");
    add(List.of("STRING", type, "STRING"), null, null, "another longer string");
  }

  static void rows() throws Exception {
    add(List.of());
    each("BOOLEAN", "true", "false");
    each("TINYINT", "1", "-128", "127");
    each("SMALLINT", "1", "-32768", "32767");
    each("INT", "1", "-2147483648", "2147483647");
    each("BIGINT", "1", "-9223372036854775808", "9223372036854775807");
    each("FLOAT", "1.5", "-0.0", "0.0", "NaN", "Infinity", "-Infinity", "3.4028235E38", "1.4E-45");
    each("DOUBLE", "1.5", "-0.0", "0.0", "NaN", "Infinity", "-Infinity", "1.7976931348623157E308", "4.9E-324");
    each("DATE", "19724", "-719162", "2932896");
    each("TIME(3)", "1", "0", "86399999");
    each("STRING", "abc", "", "1234567", "12345678", "123456789012345", "1234567890123456", "été",
        "日本語", "😀", "x".repeat(300), "a\u0000b");
    each("CHAR(9)", "abc", "123456789");
    each("VARCHAR(20)", "abc", "12345678901234567890");
    each("BYTES", "00ff", "", "01020304050607", "0102030405060708", "ff".repeat(17));
    each("BINARY(4)", "00010203");
    each("VARBINARY(10)", "00ff", "00010203040506070809");
    each("DECIMAL(5, 2)", "1.23", "-999.99", "0.00");
    each("DECIMAL(18, 0)", "1", "999999999999999999", "-999999999999999999");
    each("DECIMAL(19, 4)", "1.0000", "-0.0001", "0.0000", "999999999999999.9999", "-0.0128", "0.0127", "0.0128");
    each("DECIMAL(38, 18)", "99999999999999999999.999999999999999999",
        "-99999999999999999999.999999999999999999", "-0.000000000000000001", "0.000000000000000000");
    for (String zone : List.of("", " WITH LOCAL TIME ZONE")) {
      each("TIMESTAMP(0)" + zone, "1000000000", "-1000000000");
      each("TIMESTAMP(3)" + zone, "1704164645123000000", "-1000000", "-62135596800000000000");
      each("TIMESTAMP(6)" + zone, "1704164645123456000", "-1000", "0", "253402300799999999000");
      each("TIMESTAMP(9)" + zone, "1704164645123456789", "-1", "0", "-62135596800000000001");
    }
    List<String> wide = Collections.nCopies(57, "INT");
    String[] nulls = new String[57];
    nulls[0] = "7";
    nulls[55] = "55";
    add(wide, nulls);
    add(wide.subList(0, 56), Arrays.copyOf(nulls, 56));
    json("rows.json", ROWS);
  }

  // ---- deletion vector index files ----

  static class OnePath implements IndexPathFactory {
    final String name;
    OnePath(String name) { this.name = name; }
    public Path toPath(String fileName) { return new Path(out.toUri().toString(), fileName); }
    public Path newPath() { return toPath(name); }
    public boolean isExternalPath() { return false; }
  }

  /** Vectors by data file; a vector is a list of {start, stop, step}. */
  static Object index(String name, boolean wide, Map<String, long[][]> vectors) throws Exception {
    Map<String, DeletionVector> input = new LinkedHashMap<>();
    for (var entry : vectors.entrySet()) {
      DeletionVector vector = wide ? new Bitmap64DeletionVector() : new BitmapDeletionVector();
      for (long[] range : entry.getValue())
        for (long p = range[0]; p < range[1]; p += range[2]) vector.delete(p);
      input.put(entry.getKey(), vector);
    }
    Files.deleteIfExists(out.resolve(name));
    IndexFileMeta meta =
        new DeletionVectorsIndexFile(LocalFileIO.create(), new OnePath(name), MemorySize.ofMebiBytes(2), wide)
            .writeSingleFile(input);
    List<Object> ranges = new ArrayList<>();
    for (DeletionVectorMeta range : meta.dvRanges().values()) {
      Map<String, Object> item = new LinkedHashMap<>();
      item.put("data_file", range.dataFileName());
      item.put("offset", range.offset());
      item.put("length", range.length());
      item.put("cardinality", range.cardinality());
      item.put("positions", vectors.get(range.dataFileName()));
      ranges.add(item);
    }
    Map<String, Object> document = new LinkedHashMap<>();
    document.put("file", name);
    document.put("kind", wide ? "BITMAP64" : "BITMAP32");
    document.put("size", meta.fileSize());
    document.put("ranges", ranges);
    return document;
  }

  static void vectors() throws Exception {
    Map<String, long[][]> narrow = new LinkedHashMap<>();
    narrow.put("one.parquet", new long[][] {{0, 1, 1}});
    narrow.put("sparse.parquet", new long[][] {{3, 200_000, 997}});
    narrow.put("run.parquet", new long[][] {{10, 150_000, 1}});
    // Sizes around the break-even of array and run containers.
    narrow.put("run-of-3.parquet", new long[][] {{5, 8, 1}});
    narrow.put("run-of-4.parquet", new long[][] {{5, 9, 1}});
    narrow.put("two-runs-of-5.parquet", new long[][] {{5, 10, 1}, {20, 25, 1}});
    narrow.put("two-runs-of-6.parquet", new long[][] {{5, 11, 1}, {20, 26, 1}});
    narrow.put("bitset.parquet", new long[][] {{0, 65_536, 3}, {65_536, 65_540, 1}});
    narrow.put("array-at-its-limit.parquet", new long[][] {{0, 8_192, 2}, {65_536, 65_536 + 8_194, 2}});
    narrow.put("last.parquet", new long[][] {{0, 2, 1}, {2_147_483_646L, 2_147_483_648L, 1}});
    Map<String, long[][]> wide = new LinkedHashMap<>(narrow);
    wide.put("above-31-bits.parquet", new long[][] {{2_147_483_647L, 2_147_483_652L, 1}});
    wide.put("above-32-bits.parquet", new long[][] {{7, 8, 1}, {4_294_967_295L, 4_294_967_300L, 1}});
    // Java writes an empty bitmap for each high word it skips.
    Map<String, long[][]> gaps = new LinkedHashMap<>();
    gaps.put("gaps.parquet", new long[][] {{13L << 32, (13L << 32) + 3, 1}});
    json("vectors.json", List.of(
        index("vectors-32.bin", false, narrow),
        index("vectors-64.bin", true, wide),
        index("vectors-64-gaps.bin", true, gaps),
        index("vectors-empty.bin", false, Map.of())));
  }

  // ---- partition paths ----

  static final List<Object> PATHS = new ArrayList<>();

  static void path(boolean legacy, List<String> names, List<String> types, String... values) {
    List<DataType> parsed = types.stream().map(Golden::type).toList();
    RowType rowType = RowType.of(parsed.toArray(new DataType[0]), names.toArray(new String[0]));
    var computer = new InternalRowPartitionComputer(
        "__DEFAULT_PARTITION__", rowType, names.toArray(new String[0]), legacy);
    Map<String, Object> item = new LinkedHashMap<>();
    item.put("legacy", legacy);
    item.put("names", names);
    item.put("types", types);
    item.put("values", Arrays.asList(values));
    item.put("path", PartitionPathUtils.generatePartitionPath(
        computer.generatePartValues(row(parsed, Arrays.asList(values)))));
    PATHS.add(item);
  }

  static void both(String type, String... values) {
    for (String value : values) {
      path(true, List.of("p"), List.of(type), value);
      if (!type.endsWith("LOCAL TIME ZONE")) path(false, List.of("p"), List.of(type), value);
    }
  }

  static void paths() throws Exception {
    both("BOOLEAN", "true", "false", null);
    both("TINYINT", "-1");
    both("INT", "0", "-2147483648");
    both("BIGINT", "9223372036854775807");
    // Each prints the same under JDK 17, which wrote this, and under JDK 19, which prints the shortest decimal.
    both("FLOAT", "1.0", "-0.0", "0.1", "1.0E10", "1.0E-4", "0.001", "9999999.0", "1.0E7", "3.4028235E38", "1.4E-45",
        "16777216", "NaN", "Infinity", "-Infinity", "0.33333334", "100.0", "123456.79");
    both("DOUBLE", "1.0", "-0.0", "0.1", "1.0E10", "1.0E-4", "0.001", "9999999.999", "1.0E7", "12345678.9",
        "1.7976931348623157E308", "4.9E-324", "NaN", "-Infinity", "0.3333333333333333", "1.0E22", "123456.789",
        "-1.5E-7", "100.0");
    both("DECIMAL(5, 2)", "1.50", "-0.01", "0.00", "999.99");
    both("DECIMAL(38, 18)", "-0.000000000000000001", "99999999999999999999.999999999999999999");
    both("DECIMAL(20, 0)", "12345678901234567890");
    both("DATE", "19724", "0", "-1", "-719162", "2932896", "2932897", "-719163", "-719528", "-1100000");
    both("TIME(0)", "0", "3661000", "86399000");
    both("TIME(3)", "1", "10", "100", "3661120", "86399999");
    both("TIME(9)", "86399999");
    for (String zone : List.of("", " WITH LOCAL TIME ZONE")) {
      both("TIMESTAMP(0)" + zone, "0", "1704164640000000000", "1704164645000000000");
      both("TIMESTAMP(3)" + zone, "1704164645123000000", "1704164640100000000", "-1000000");
      both("TIMESTAMP(6)" + zone, "1704164645123456000", "1704164645000001000", "1704164645100000000");
      both("TIMESTAMP(9)" + zone, "1704164645123456789", "1704164645000000001", "1704164640000000000",
          "-62135596800000000001", "-62167219200000000001", "253402300800000000000", "1704164645120000000");
    }
    both("STRING", "plain", "with space", "", " ", "\t\n", "\u2003", "\u00a0", "a/b", "a=b", "100%", "a:b", "q?#*",
        "{x}[y]^", "'\"\\", "\u0001\u001f\u007f", "été", "日本語", "😀", "..", "a.b", "~", "a+b,c;d&e|f<g>h!i@j$k(l)`",
        "__DEFAULT_PARTITION__", "x".repeat(40), "\u0085", "\u001c", "a\u0000b", null);
    both("CHAR(5)", "abc");
    both("VARCHAR(5)", "abcde");
    path(false, List.of("p"), List.of("BYTES"), HexFormat.of().formatHex("é/b".getBytes(StandardCharsets.UTF_8)));
    path(false, List.of("p"), List.of("BINARY(2)"), "6162");
    List<String> names = List.of("dt", "sp ace", "a=b/c");
    List<String> types = List.of("DATE", "STRING", "INT");
    for (boolean legacy : new boolean[] {true, false}) {
      path(legacy, List.of(), List.of());
      path(legacy, names, types, "19724", "eu/west", "7");
      path(legacy, names, types, null, "", null);
    }
    json("paths.json", PATHS);
  }

  // ---- manifests of a small table ----

  static GenericRow order(String region, int day, long id, String note, RowKind kind) {
    GenericRow row = GenericRow.of(day, BinaryString.fromString(region), id,
        Decimal.fromUnscaledLong(id * 100, 12, 2), BinaryString.fromString(note), Timestamp.fromMicros(1_704_164_645_123_456L + id));
    row.setRowKind(kind);
    return row;
  }

  static void write(Table table, List<GenericRow> rows) throws Exception {
    BatchWriteBuilder builder = table.copy(Map.of("write-only", "true")).newBatchWriteBuilder();
    try (BatchTableWrite write = builder.newWrite(); BatchTableCommit commit = builder.newCommit()) {
      write.withIOManager(IOManager.create(System.getProperty("java.io.tmpdir")));
      for (GenericRow row : rows) write.write(row);
      commit.commit(write.prepareCommit());
    }
  }

  static void compact(Table table, List<GenericRow> partitions, boolean full) throws Exception {
    BatchWriteBuilder builder = table.copy(Map.of("write-only", "false")).newBatchWriteBuilder();
    try (BatchTableWrite write = builder.newWrite(); BatchTableCommit commit = builder.newCommit()) {
      write.withIOManager(IOManager.create(System.getProperty("java.io.tmpdir")));
      InternalRowSerializer serializer = new InternalRowSerializer(DataTypes.DATE(), DataTypes.STRING());
      for (GenericRow partition : partitions)
        write.compact(serializer.toBinaryRow(partition).copy(), 0, full);
      commit.commit(write.prepareCommit());
    }
  }

  static void manifests() throws Exception {
    String warehouse = Files.createTempDirectory("golden").toString();
    Options options = new Options();
    options.set("warehouse", warehouse);
    Catalog catalog = CatalogFactory.createCatalog(CatalogContext.create(options));
    catalog.createDatabase("db", true);
    Identifier id = Identifier.create("db", "orders");
    catalog.createTable(id, Schema.newBuilder()
        .column("day", DataTypes.DATE()).column("region", DataTypes.STRING()).column("id", DataTypes.BIGINT())
        .column("amount", DataTypes.DECIMAL(12, 2)).column("note", DataTypes.STRING()).column("at", DataTypes.TIMESTAMP(6))
        .partitionKeys("day", "region").primaryKey("day", "region", "id")
        .option("bucket", "1").option("deletion-vectors.enabled", "true").build(), false);
    FileStoreTable table = (FileStoreTable) catalog.getTable(id);
    List<GenericRow> first = new ArrayList<>();
    for (long k = 0; k < 50; k++) {
      first.add(order("eu:west", 19724, k, "first " + k, RowKind.INSERT));
      first.add(order("us", 19725, k, "first " + k, RowKind.INSERT));
    }
    write(table, first);
    List<GenericRow> partitions = List.of(
        GenericRow.of(19724, BinaryString.fromString("eu:west")), GenericRow.of(19725, BinaryString.fromString("us")));
    compact(table, partitions, true);
    write(table, List.of(
        order("eu:west", 19724, 3, "changed", RowKind.INSERT), order("eu:west", 19724, 4, "gone", RowKind.DELETE),
        order("us", 19725, 60, "new", RowKind.INSERT), order("us", 19725, 7, "gone", RowKind.DELETE)));
    compact(table, partitions, false);

    var snapshot = table.snapshotManager().latestSnapshot();
    copy(warehouse, snapshot.baseManifestList(), "manifest-list.avro");
    copy(warehouse, snapshot.indexManifest(), "index-manifest.avro");
    var lists = table.store().manifestListFactory().create();
    var delta = lists.readDeltaManifests(snapshot);
    copy(warehouse, delta.get(0).fileName(), "manifest.avro");
    Map<String, Object> document = new LinkedHashMap<>();
    document.put("manifest_list", lists.read(snapshot.baseManifestList()).stream().map(Golden::describe).toList());
    document.put("manifest",
        table.store().manifestFileFactory().create().read(delta.get(0).fileName()).stream().map(Golden::describe).toList());
    document.put("index_manifest",
        table.store().newIndexFileHandler().readManifest(snapshot.indexManifest()).stream().map(Golden::describe).toList());
    json("manifests.json", document);
  }

  static void copy(String warehouse, String name, String to) throws Exception {
    Files.copy(java.nio.file.Path.of(warehouse, "db.db", "orders", "manifest", name), out.resolve(to),
        StandardCopyOption.REPLACE_EXISTING);
  }

  static Map<String, Object> describe(ManifestFileMeta m) {
    Map<String, Object> r = new LinkedHashMap<>();
    r.put("_FILE_NAME", m.fileName());
    r.put("_FILE_SIZE", m.fileSize());
    r.put("_NUM_ADDED_FILES", m.numAddedFiles());
    r.put("_NUM_DELETED_FILES", m.numDeletedFiles());
    r.put("_PARTITION_MIN", hex(SerializationUtils.serializeBinaryRow(m.partitionStats().minValues())));
    r.put("_PARTITION_MAX", hex(SerializationUtils.serializeBinaryRow(m.partitionStats().maxValues())));
    r.put("_SCHEMA_ID", m.schemaId());
    r.put("_MIN_BUCKET", m.minBucket());
    r.put("_MAX_LEVEL", m.maxLevel());
    return r;
  }

  static Map<String, Object> describe(ManifestEntry e) {
    var f = e.file();
    Map<String, Object> r = new LinkedHashMap<>();
    r.put("_KIND", e.kind().toByteValue());
    r.put("_PARTITION", hex(SerializationUtils.serializeBinaryRow(e.partition())));
    r.put("_BUCKET", e.bucket());
    r.put("_TOTAL_BUCKETS", e.totalBuckets());
    r.put("_FILE_NAME", f.fileName());
    r.put("_FILE_SIZE", f.fileSize());
    r.put("_ROW_COUNT", f.rowCount());
    r.put("_MIN_KEY", hex(SerializationUtils.serializeBinaryRow(f.minKey())));
    r.put("_MAX_KEY", hex(SerializationUtils.serializeBinaryRow(f.maxKey())));
    r.put("_MIN_SEQUENCE_NUMBER", f.minSequenceNumber());
    r.put("_MAX_SEQUENCE_NUMBER", f.maxSequenceNumber());
    r.put("_SCHEMA_ID", f.schemaId());
    r.put("_LEVEL", f.level());
    r.put("_CREATION_TIME", f.creationTime().getMillisecond());
    r.put("_DELETE_ROW_COUNT", f.deleteRowCount().orElse(null));
    r.put("_FILE_SOURCE", f.fileSource().map(s -> (int) s.toByteValue()).orElse(null));
    r.put("_VALUE_STATS_COLS", f.valueStatsCols());
    return r;
  }

  static Map<String, Object> describe(IndexManifestEntry e) {
    Map<String, Object> r = new LinkedHashMap<>();
    r.put("_KIND", e.kind().toByteValue());
    r.put("_PARTITION", hex(SerializationUtils.serializeBinaryRow(e.partition())));
    r.put("_BUCKET", e.bucket());
    r.put("_INDEX_TYPE", e.indexFile().indexType());
    r.put("_FILE_NAME", e.indexFile().fileName());
    r.put("_FILE_SIZE", e.indexFile().fileSize());
    r.put("_ROW_COUNT", e.indexFile().rowCount());
    List<Object> ranges = new ArrayList<>();
    for (DeletionVectorMeta m : e.indexFile().dvRanges().values())
      ranges.add(List.of(m.dataFileName(), m.offset(), m.length(), m.cardinality()));
    r.put("_RANGES", ranges);
    return r;
  }
}
