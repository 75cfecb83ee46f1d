import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.ToIntFunction;
import org.apache.paimon.CoreOptions;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.index.HashBucketAssigner;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.paimon.table.BucketMode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.sink.RowPartitionKeyExtractor;
import org.apache.paimon.table.sink.TableCommitImpl;
import org.apache.paimon.table.sink.TableWriteImpl;
import org.apache.paimon.types.RowKind;
import org.apache.paimon.types.RowType;

/** Rows -> one commit each time, by a writer that never compacts unless asked to. */
final class Writes {
    interface Rows {
        void into(TableWriteImpl<?> write) throws Exception;
    }

    static JsonNode write(JsonNode request) throws Exception {
        FileStoreTable table = forWriting(request);
        RowType type = table.rowType();
        return commit(
                table,
                request,
                write -> {
                    ToIntFunction<InternalRow> bucket = buckets(table);
                    for (JsonNode row : request.required("rows")) {
                        GenericRow values = Values.toRow(row, 1, type);
                        values.setRowKind(RowKind.fromShortString(row.get(0).asText()));
                        if (bucket == null) {
                            write.write(values);
                        } else {
                            write.write(values, bucket.applyAsInt(values));
                        }
                    }
                });
    }

    /** The bucket of each row by the hash index of its partition, as the only assigner; null for fixed buckets. */
    private static ToIntFunction<InternalRow> buckets(FileStoreTable table) {
        if (table.bucketMode() != BucketMode.HASH_DYNAMIC) {
            return null;
        }
        CoreOptions options = table.coreOptions();
        RowPartitionKeyExtractor keys = new RowPartitionKeyExtractor(table.schema());
        HashBucketAssigner assigner =
                new HashBucketAssigner(
                        table.snapshotManager(), "assigner", table.store().newIndexFileHandler(), 1, 1, 0,
                        options.dynamicBucketTargetRowNum(), options.dynamicBucketMaxBuckets());
        return row -> assigner.assign(keys.partition(row), keys.trimmedPrimaryKey(row).hashCode());
    }

    static FileStoreTable forWriting(JsonNode request) {
        FileStoreTable table = Tables.openWithOptions(request);
        String writeOnly = Boolean.toString(request.path("write_only").asBoolean(true));
        return table.copy(Map.of("write-only", writeOnly));
    }

    static JsonNode commit(FileStoreTable table, JsonNode request, Rows rows) throws Exception {
        String user = request.path("user").asText(UUID.randomUUID().toString());
        long identifier = request.path("identifier").asLong(BatchWriteBuilder.COMMIT_IDENTIFIER);
        try (TableWriteImpl<?> write = table.newWrite(user);
                TableCommitImpl commit = table.newCommit(user)) {
            write.withIOManager(IOManager.create(System.getProperty("java.io.tmpdir")));
            rows.into(write);
            commit.ignoreEmptyCommit(true);
            commit.commit(identifier, write.prepareCommit(true, identifier));
        }
        return latest(table);
    }

    static JsonNode truncate(JsonNode request) throws Exception {
        FileStoreTable table = Tables.open(request);
        try (BatchTableCommit commit = table.newBatchWriteBuilder().newCommit()) {
            if (request.has("partitions")) {
                List<Map<String, String>> partitions = new ArrayList<>();
                request.get("partitions").forEach(spec -> partitions.add(Tables.texts(spec)));
                commit.truncatePartitions(partitions);
            } else {
                commit.truncateTable();
            }
        }
        return latest(table);
    }

    static ObjectNode latest(FileStoreTable table) {
        Long id = table.snapshotManager().latestSnapshotIdFromFileSystem();
        return PaimonDriver.JSON.createObjectNode().put("snapshot", id);
    }

    private Writes() {}
}
