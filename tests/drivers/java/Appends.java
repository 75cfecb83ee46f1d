import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.apache.paimon.Snapshot;
import org.apache.paimon.append.AppendCompactCoordinator;
import org.apache.paimon.append.AppendCompactTask;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.deletionvectors.Bitmap64DeletionVector;
import org.apache.paimon.deletionvectors.BitmapDeletionVector;
import org.apache.paimon.deletionvectors.DeletionVector;
import org.apache.paimon.deletionvectors.append.BaseAppendDeleteFileMaintainer;
import org.apache.paimon.index.IndexFileHandler;
import org.apache.paimon.index.IndexFileMeta;
import org.apache.paimon.io.CompactIncrement;
import org.apache.paimon.io.DataIncrement;
import org.apache.paimon.manifest.FileKind;
import org.apache.paimon.manifest.IndexManifestEntry;
import org.apache.paimon.manifest.ManifestEntry;
import org.apache.paimon.operation.BaseAppendFileStoreWrite;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.table.BucketMode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.CommitMessageImpl;
import org.apache.paimon.table.source.EndOfScanException;

/** Tables without keys: what Spark's DELETE does, and a dedicated compaction job where no bucket is known. */
final class Appends {
    static boolean isOne(FileStoreTable table) {
        return table.primaryKeys().isEmpty() && table.bucketMode() == BucketMode.BUCKET_UNAWARE;
    }

    /** One round of the coordinator's picks. */
    static List<CommitMessage> compact(FileStoreTable table, String user) throws Exception {
        List<CommitMessage> messages = new ArrayList<>();
        BaseAppendFileStoreWrite write = (BaseAppendFileStoreWrite) table.store().newWrite(user);
        try {
            for (AppendCompactTask task : new AppendCompactCoordinator(table, false).run()) {
                messages.add(task.doCompact(table, write));
            }
        } catch (EndOfScanException nothingToCompact) {
            return messages;
        } finally {
            write.close();
        }
        return messages;
    }

    /** Deletes the rows at "positions", {data file: [ordinal]}, in one commit. */
    static JsonNode delete(JsonNode request) throws Exception {
        FileStoreTable table = Tables.open(request);
        String user = request.path("user").asText(UUID.randomUUID().toString());
        return Compactions.commitNow(table, user, vectors(table, request.required("positions")));
    }

    static JsonNode prepareDelete(JsonNode request) throws Exception {
        FileStoreTable table = Tables.open(request);
        String user = request.path("user").asText(UUID.randomUUID().toString());
        return Compactions.keep(table, user, vectors(table, request.required("positions")));
    }

    private static List<CommitMessage> vectors(FileStoreTable table, JsonNode positions) {
        Map<BinaryRow, Map<Integer, Set<String>>> files = new HashMap<>();
        Map<BinaryRow, Integer> totals = new HashMap<>();
        for (ManifestEntry entry : table.store().newScan().plan().files()) {
            BinaryRow partition = entry.partition().copy();
            totals.put(partition, entry.totalBuckets());
            files.computeIfAbsent(partition, p -> new HashMap<>())
                    .computeIfAbsent(entry.bucket(), b -> new HashSet<>())
                    .add(entry.fileName());
        }
        List<CommitMessage> messages = new ArrayList<>();
        files.forEach(
                (partition, buckets) ->
                        buckets.forEach(
                                (bucket, names) -> {
                                    BaseAppendDeleteFileMaintainer maintainer = maintainer(table, partition, bucket);
                                    add(table, maintainer, totals.get(partition), names, positions, messages);
                                }));
        return messages;
    }

    private static BaseAppendDeleteFileMaintainer maintainer(FileStoreTable table, BinaryRow partition, int bucket) {
        IndexFileHandler handler = table.store().newIndexFileHandler();
        Snapshot latest = table.snapshotManager().latestSnapshot();
        return isOne(table)
                ? BaseAppendDeleteFileMaintainer.forUnawareAppend(handler, latest, partition)
                : BaseAppendDeleteFileMaintainer.forBucketedAppend(handler, latest, partition, bucket);
    }

    private static void add(
            FileStoreTable table,
            BaseAppendDeleteFileMaintainer maintainer,
            int totalBuckets,
            Set<String> names,
            JsonNode positions,
            List<CommitMessage> to) {
        boolean any = false;
        for (Iterator<Map.Entry<String, JsonNode>> it = positions.fields(); it.hasNext(); ) {
            Map.Entry<String, JsonNode> file = it.next();
            if (names.contains(file.getKey())) {
                boolean wide = table.coreOptions().deletionVectorBitmap64();
                DeletionVector vector = wide ? new Bitmap64DeletionVector() : new BitmapDeletionVector();
                file.getValue().forEach(position -> vector.delete(position.asLong()));
                maintainer.notifyNewDeletionVector(file.getKey(), vector);
                any = true;
            }
        }
        if (any) {
            List<IndexFileMeta> added = new ArrayList<>();
            List<IndexFileMeta> removed = new ArrayList<>();
            for (IndexManifestEntry entry : maintainer.persist()) {
                (entry.kind() == FileKind.ADD ? added : removed).add(entry.indexFile());
            }
            DataIncrement increment = new DataIncrement(List.of(), List.of(), List.of(), added, removed);
            to.add(
                    new CommitMessageImpl(
                            maintainer.getPartition(),
                            maintainer.getBucket(),
                            totalBuckets,
                            increment,
                            CompactIncrement.emptyIncrement()));
        }
    }

    private Appends() {}
}
