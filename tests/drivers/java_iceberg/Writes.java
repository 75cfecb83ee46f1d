import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.Metrics;
import org.apache.iceberg.MetricsConfig;
import org.apache.iceberg.PartitionKey;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.data.GenericFileWriterFactory;
import org.apache.iceberg.data.InternalRecordWrapper;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.io.DataWriter;
import org.apache.iceberg.io.FileWriterFactory;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFileFactory;
import org.apache.iceberg.io.WriteResult;
import org.apache.iceberg.mapping.MappingUtil;
import org.apache.iceberg.mapping.NameMapping;
import org.apache.iceberg.mapping.NameMappingParser;
import org.apache.iceberg.parquet.ParquetUtil;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.types.TypeUtil;
import org.apache.iceberg.util.StructLikeMap;

/** Rows to files that are not committed yet: a handle of them goes to Commits. */
final class Writes {
    static FileFormat format(Table table) {
        return FileFormat.fromString(table.properties().getOrDefault(TableProperties.DEFAULT_FILE_FORMAT, "parquet"));
    }

    static OutputFileFactory files(Table table, FileFormat format) {
        return OutputFileFactory.builderFor(table, 0, 1).format(format).operationId(UUID.randomUUID().toString()).build();
    }

    static PartitionSpec spec(Table table, JsonNode request) {
        return request.hasNonNull("spec_id") ? table.specs().get(request.get("spec_id").asInt()) : table.spec();
    }

    static Schema schema(Table table, JsonNode request) {
        return request.hasNonNull("schema_id") ? table.schemas().get(request.get("schema_id").asInt()) : table.schema();
    }

    /** Columns by name, a nested one by its path. */
    static Set<Integer> ids(Schema schema, JsonNode names) {
        Set<Integer> ids = new LinkedHashSet<>();
        for (JsonNode name : names) {
            if (schema.findField(name.asText()) == null) {
                throw new IllegalArgumentException("column: found " + name + ", expected one of " + schema);
            }
            ids.add(schema.findField(name.asText()).fieldId());
        }
        return ids;
    }

    static GenericFileWriterFactory.Builder factory(Table table) {
        return new GenericFileWriterFactory.Builder(table);
    }

    /** Rows in order, `rows_per_file` in each file of a partition. */
    static JsonNode rows(JsonNode request) throws Exception {
        Table table = Tables.load(request);
        Schema schema = schema(table, request);
        List<Record> records = new ArrayList<>();
        for (JsonNode row : request.required("rows")) {
            records.add(Values.toRecord(row, schema.asStruct()));
        }
        int limit = request.path("rows_per_file").asInt(Integer.MAX_VALUE);
        FileWriterFactory<Record> factory = factory(table).dataSchema(schema).build();
        return Commits.pend(table, write(table, schema, spec(table, request), factory, records, limit), List.of());
    }

    static List<DataFile> write(
            Table table,
            Schema schema,
            PartitionSpec spec,
            FileWriterFactory<Record> factory,
            Iterable<Record> records,
            int limit)
            throws Exception {
        InternalRecordWrapper wrapper = new InternalRecordWrapper(schema.asStruct());
        PartitionKey key = new PartitionKey(spec, schema);
        Map<StructLike, List<Record>> parts = StructLikeMap.create(spec.partitionType());
        List<StructLike> order = new ArrayList<>();
        for (Record record : records) {
            key.partition(wrapper.wrap(record));
            List<Record> part = parts.get(key);
            if (part == null) {
                part = new ArrayList<>();
                StructLike copy = key.copy();
                parts.put(copy, part);
                order.add(copy);
            }
            part.add(record);
        }
        OutputFileFactory files = files(table, format(table));
        List<DataFile> written = new ArrayList<>();
        for (StructLike partition : order) {
            List<Record> part = parts.get(partition);
            for (int from = 0; from < part.size(); from += Math.min(limit, part.size() - from)) {
                StructLike at = spec.isUnpartitioned() ? null : partition;
                var file = at == null ? files.newOutputFile() : files.newOutputFile(spec, at);
                DataWriter<Record> writer = factory.newDataWriter(file, spec, at);
                try (writer) {
                    part.subList(from, from + Math.min(limit, part.size() - from)).forEach(writer::write);
                }
                written.add(writer.toDataFile());
            }
        }
        return written;
    }

    /** Changes [kind, row] of one checkpoint, through Iceberg's own delta writers. */
    static JsonNode cdc(JsonNode request) throws Exception {
        Table table = Tables.load(request);
        Schema schema = table.schema();
        Set<Integer> ids = ids(schema, request.required("keys"));
        Schema keys = TypeUtil.select(schema, ids);
        boolean upsert = request.path("upsert").asBoolean();
        FileWriterFactory<Record> factory =
                factory(table)
                        .equalityFieldIds(ids.stream().mapToInt(Integer::intValue).toArray())
                        .equalityDeleteRowSchema(upsert ? keys : schema)
                        .build();
        long target = request.path("target_bytes").asLong(512L << 20);
        DeltaWriter writer = new DeltaWriter(table, keys, factory, upsert, target);
        for (JsonNode change : request.required("changes")) {
            writer.change(change.get(0).asText(), Values.toRecord(change.get(1), schema.asStruct()));
        }
        WriteResult result = writer.complete();
        return Commits.pend(table, List.of(result.dataFiles()), List.of(result.deleteFiles()));
    }

    /** A Parquet file that another program wrote, whose columns may have no ids. */
    static JsonNode adopt(JsonNode request) throws Exception {
        Table table = Tables.load(request);
        PartitionSpec spec = spec(table, request);
        NameMapping mapping = MappingUtil.create(table.schema());
        if (!table.properties().containsKey(TableProperties.DEFAULT_NAME_MAPPING)) {
            String text = NameMappingParser.toJson(mapping);
            table.updateProperties().set(TableProperties.DEFAULT_NAME_MAPPING, text).commit();
        }
        InputFile file = table.io().newInputFile(request.required("path").asText());
        // Of other formats than Parquet nothing but the number of rows is known.
        FileFormat format = FileFormat.fromFileName(file.location());
        Metrics metrics =
                format == FileFormat.PARQUET
                        ? ParquetUtil.fileMetrics(file, MetricsConfig.forTable(table), mapping)
                        : new Metrics(request.required("rows").asLong());
        DataFile adopted =
                DataFiles.builder(spec)
                        .withInputFile(file)
                        .withFormat(format)
                        .withPartition(Values.toPartition(request.path("partition"), spec))
                        .withMetrics(metrics)
                        .build();
        return Commits.pend(table, List.of(adopted), List.of());
    }

    private Writes() {}
}
