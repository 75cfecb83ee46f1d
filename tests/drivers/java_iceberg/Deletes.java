import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.Table;
import org.apache.iceberg.data.BaseDeleteLoader;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.deletes.BaseDVFileWriter;
import org.apache.iceberg.deletes.EqualityDeleteWriter;
import org.apache.iceberg.deletes.PositionDelete;
import org.apache.iceberg.deletes.PositionDeleteWriter;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.DeleteWriteResult;
import org.apache.iceberg.io.FileWriterFactory;
import org.apache.iceberg.io.OutputFileFactory;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.types.TypeUtil;

/** Delete files built as asked, through Iceberg's writers of single files. */
final class Deletes {
    /** One file with rows of the key columns, or of all columns if `full`. */
    static JsonNode equality(JsonNode request) throws Exception {
        Table table = Tables.load(request);
        Schema schema = Writes.schema(table, request);
        Set<Integer> ids = Writes.ids(schema, request.required("keys"));
        Schema rows = request.path("full").asBoolean() ? schema : TypeUtil.select(schema, ids);
        FileWriterFactory<Record> factory =
                Writes.factory(table)
                        .equalityFieldIds(ids.stream().mapToInt(Integer::intValue).toArray())
                        .equalityDeleteRowSchema(rows)
                        .build();
        PartitionSpec spec = Writes.spec(table, request);
        StructLike partition = Values.toPartition(request.path("partition"), spec);
        OutputFileFactory files = Writes.files(table, Writes.format(table));
        var file = partition == null ? files.newOutputFile() : files.newOutputFile(spec, partition);
        EqualityDeleteWriter<Record> writer = factory.newEqualityDeleteWriter(file, spec, partition);
        try (writer) {
            for (JsonNode row : request.required("rows")) {
                writer.write(Values.toRecord(row, rows.asStruct()));
            }
        }
        return Commits.pend(table, List.of(), List.of(writer.toDeleteFile()));
    }

    /** Live files of the table as it is, and of handles not committed yet, by their paths. */
    static Map<String, DataFile> dataFiles(Table table, JsonNode request) throws Exception {
        Map<String, DataFile> found = new HashMap<>();
        try (CloseableIterable<FileScanTask> tasks = table.newScan().planFiles()) {
            tasks.forEach(task -> found.put(task.file().location(), task.file()));
        }
        for (JsonNode handle : request.path("of")) {
            Commits.pending(handle).data().forEach(file -> found.put(file.location(), file));
        }
        return found;
    }

    /** Positions [path, position]; one file for each partition that they are in, or for each data file. */
    static JsonNode positions(JsonNode request) throws Exception {
        Table table = Tables.load(request);
        Map<String, DataFile> known = dataFiles(table, request);
        boolean alone = request.path("granularity").asText("partition").equals("file");
        Map<List<Object>, List<JsonNode>> groups = new LinkedHashMap<>();
        for (JsonNode position : request.required("positions")) {
            String path = position.get(0).asText();
            DataFile file = known.get(path);
            if (file == null) {
                throw new IllegalArgumentException("position: no live data file " + path);
            }
            Object part = Values.partition(file.partition(), table.specs().get(file.specId())).toString();
            List<Object> group = List.of(file.specId(), alone ? path : part);
            groups.computeIfAbsent(group, none -> new ArrayList<>()).add(position);
        }
        List<DeleteFile> written = new ArrayList<>();
        OutputFileFactory files = Writes.files(table, FileFormat.PARQUET);
        for (List<JsonNode> group : groups.values()) {
            DataFile first = known.get(group.get(0).get(0).asText());
            PartitionSpec spec = table.specs().get(first.specId());
            StructLike at = spec.isUnpartitioned() ? null : first.partition();
            var file = at == null ? files.newOutputFile() : files.newOutputFile(spec, at);
            PositionDeleteWriter<Record> writer = Writes.factory(table).build().newPositionDeleteWriter(file, spec, at);
            try (writer) {
                PositionDelete<Record> delete = PositionDelete.create();
                for (JsonNode position : group) {
                    writer.write(delete.set(position.get(0).asText(), position.get(1).asLong()));
                }
            }
            written.add(writer.toDeleteFile());
        }
        return Commits.pend(table, List.of(), written);
    }

    /** One Puffin file with a vector for each data file of [path, position]; with `merge`, of what was deleted too. */
    static JsonNode vectors(JsonNode request) throws Exception {
        Table table = Tables.load(request);
        Map<String, DataFile> known = dataFiles(table, request);
        Map<String, List<DeleteFile>> before = new HashMap<>();
        if (request.path("merge").asBoolean(true)) {
            try (CloseableIterable<FileScanTask> tasks = table.newScan().planFiles()) {
                for (FileScanTask task : tasks) {
                    List<DeleteFile> positions = new ArrayList<>(task.deletes());
                    positions.removeIf(file -> file.equalityFieldIds() != null && !file.equalityFieldIds().isEmpty());
                    before.put(task.file().location(), positions);
                }
            }
        }
        BaseDeleteLoader loader = new BaseDeleteLoader(file -> table.io().newInputFile(file.location()));
        // Flink's writer names Puffin files by the format of data files.
        FileFormat named = request.path("flink_name").asBoolean() ? FileFormat.PARQUET : FileFormat.PUFFIN;
        BaseDVFileWriter writer =
                new BaseDVFileWriter(
                        Writes.files(table, named),
                        path -> {
                            List<DeleteFile> earlier = before.getOrDefault(path, List.of());
                            return earlier.isEmpty() ? null : loader.loadPositionDeletes(earlier, path);
                        });
        try (writer) {
            for (JsonNode position : request.required("positions")) {
                String path = position.get(0).asText();
                DataFile file = known.get(path);
                PartitionSpec spec = table.specs().get(file.specId());
                writer.delete(path, position.get(1).asLong(), spec, spec.isUnpartitioned() ? null : file.partition());
            }
        }
        DeleteWriteResult result = writer.result();
        return Commits.pend(table, List.of(), result.deleteFiles(), result.rewrittenDeleteFiles());
    }

    private Deletes() {}
}
