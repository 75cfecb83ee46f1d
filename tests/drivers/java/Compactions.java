import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.manifest.BucketEntry;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.CommitMessageImpl;
import org.apache.paimon.table.sink.TableCommitImpl;
import org.apache.paimon.table.sink.TableWriteImpl;

/** A dedicated compaction job in two phases: prepared files, then the commit. Races live between the two. */
final class Compactions {
    private static final Map<String, Prepared> PREPARED = new HashMap<>();

    private static final class Prepared {
        final FileStoreTable table;
        final String user;
        final List<CommitMessage> messages;
        final ObjectNode report;

        Prepared(FileStoreTable table, String user, List<CommitMessage> messages, ObjectNode report) {
            this.table = table;
            this.user = user;
            this.messages = messages;
            this.report = report;
        }
    }

    static JsonNode compact(JsonNode request) throws Exception {
        Prepared prepared = run(request);
        commit(prepared);
        return prepared.report;
    }

    static JsonNode prepare(JsonNode request) throws Exception {
        return keep(run(request));
    }

    static ObjectNode keep(FileStoreTable table, String user, List<CommitMessage> messages) {
        return keep(of(table, user, messages));
    }

    static JsonNode commitNow(FileStoreTable table, String user, List<CommitMessage> messages) throws Exception {
        Prepared prepared = of(table, user, messages);
        commit(prepared);
        return prepared.report;
    }

    private static Prepared of(FileStoreTable table, String user, List<CommitMessage> messages) {
        ObjectNode report = PaimonDriver.JSON.createObjectNode().put("user", user).put("threads", 1);
        report.put("prepare_seconds", 0.0).put("cpu_seconds", 0.0).set("units", units(table, messages));
        return new Prepared(table, user, messages, report);
    }

    private static ObjectNode keep(Prepared prepared) {
        String handle = UUID.randomUUID().toString();
        PREPARED.put(handle, prepared);
        return prepared.report.put("handle", handle);
    }

    static JsonNode commitPrepared(JsonNode request) throws Exception {
        Prepared prepared = take(request);
        commit(prepared);
        return prepared.report;
    }

    static JsonNode abortPrepared(JsonNode request) throws Exception {
        Prepared prepared = take(request);
        try (TableCommitImpl commit = prepared.table.newCommit(prepared.user)) {
            commit.abort(prepared.messages);
        }
        return prepared.report;
    }

    static JsonNode compactManifests(JsonNode request) throws Exception {
        FileStoreTable table = Tables.open(request);
        try (BatchTableCommit commit = table.newBatchWriteBuilder().newCommit()) {
            commit.compactManifests();
        }
        return Writes.latest(table);
    }

    private static Prepared take(JsonNode request) {
        String handle = request.required("handle").asText();
        Prepared prepared = PREPARED.remove(handle);
        if (prepared == null) {
            throw new IllegalArgumentException("handle " + handle + ": expected a prepared compaction, found none");
        }
        return prepared;
    }

    private static Prepared run(JsonNode request) throws Exception {
        FileStoreTable table = Tables.openWithOptions(request).copy(Map.of("write-only", "false"));
        String user = request.path("user").asText(UUID.randomUUID().toString());
        if (Appends.isOne(table)) {
            return of(table, user, Appends.compact(table, user));
        }
        List<BucketEntry> buckets = buckets(table, request);
        int threads = Math.max(1, Math.min(request.path("threads").asInt(1), buckets.size()));
        long cpu = cpuNanos();
        long start = System.nanoTime();
        List<CommitMessage> messages = inThreads(table, user, buckets, threads, request);
        ObjectNode report = PaimonDriver.JSON.createObjectNode();
        report.put("prepare_seconds", (System.nanoTime() - start) / 1e9);
        report.put("cpu_seconds", (cpuNanos() - cpu) / 1e9);
        report.put("threads", threads);
        report.put("user", user);
        report.set("units", units(table, messages));
        return new Prepared(table, user, messages, report);
    }

    private static List<CommitMessage> inThreads(
            FileStoreTable table, String user, List<BucketEntry> buckets, int threads, JsonNode request)
            throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try {
            List<Future<List<CommitMessage>>> parts = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                List<BucketEntry> mine = new ArrayList<>();
                for (int b = i; b < buckets.size(); b += threads) {
                    mine.add(buckets.get(b));
                }
                parts.add(pool.submit(() -> prepareBuckets(table, user, mine, request)));
            }
            List<CommitMessage> messages = new ArrayList<>();
            for (Future<List<CommitMessage>> part : parts) {
                messages.addAll(part.get());
            }
            return messages;
        } finally {
            pool.shutdown();
        }
    }

    private static List<CommitMessage> prepareBuckets(
            FileStoreTable table, String user, List<BucketEntry> buckets, JsonNode request) throws Exception {
        boolean full = request.path("full").asBoolean(false);
        SinglePick executor = new SinglePick();
        try (TableWriteImpl<?> write = table.newWrite(user)) {
            write.withIOManager(IOManager.create(System.getProperty("java.io.tmpdir")));
            if (request.path("single_pick").asBoolean(false)) {
                write.withCompactExecutor(executor);
            }
            for (BucketEntry bucket : buckets) {
                write.compact(bucket.partition(), bucket.bucket(), full);
            }
            executor.close();
            return write.prepareCommit(true, BatchWriteBuilder.COMMIT_IDENTIFIER);
        }
    }

    /** All buckets of the latest snapshot, in a fixed order, or those named by "partition" and "buckets". */
    private static List<BucketEntry> buckets(FileStoreTable table, JsonNode request) {
        JsonNode partition = request.path("partition");
        List<Integer> wanted = new ArrayList<>();
        request.path("buckets").forEach(bucket -> wanted.add(bucket.asInt()));
        return table.store().newScan().readBucketEntries().stream()
                .filter(entry -> wanted.isEmpty() || wanted.contains(entry.bucket()))
                // As text: a parsed int and a long of the same value are different nodes.
                .filter(
                        entry ->
                                !partition.isArray()
                                        || partition.toString().equals(partition(table, entry.partition()).toString()))
                .sorted(
                        Comparator.comparing((BucketEntry e) -> partition(table, e.partition()).toString())
                                .thenComparing(BucketEntry::bucket))
                .collect(Collectors.toList());
    }

    static ArrayNode partition(FileStoreTable table, BinaryRow partition) {
        return Values.toJson(partition, table.schema().logicalPartitionType());
    }

    private static void commit(Prepared prepared) throws Exception {
        long cpu = cpuNanos();
        long start = System.nanoTime();
        try (TableCommitImpl commit = prepared.table.newCommit(prepared.user)) {
            commit.ignoreEmptyCommit(true);
            commit.commit(BatchWriteBuilder.COMMIT_IDENTIFIER, prepared.messages);
        }
        prepared.report.put("commit_seconds", (System.nanoTime() - start) / 1e9);
        double before = prepared.report.get("cpu_seconds").asDouble();
        prepared.report.put("cpu_seconds", before + (cpuNanos() - cpu) / 1e9);
        prepared.report.setAll(Writes.latest(prepared.table));
    }

    private static ArrayNode units(FileStoreTable table, List<CommitMessage> messages) {
        ArrayNode units = PaimonDriver.JSON.createArrayNode();
        for (CommitMessage message : messages) {
            CommitMessageImpl bucket = (CommitMessageImpl) message;
            ObjectNode unit = units.addObject().put("bucket", bucket.bucket());
            unit.set("partition", partition(table, bucket.partition()));
            unit.set("before", names(bucket.compactIncrement().compactBefore()));
            unit.set("after", names(bucket.compactIncrement().compactAfter()));
            ArrayNode indexes = unit.putArray("new_index_files");
            bucket.compactIncrement().newIndexFiles().forEach(file -> indexes.add(file.fileName()));
        }
        return units;
    }

    private static ArrayNode names(List<DataFileMeta> files) {
        ArrayNode result = PaimonDriver.JSON.createArrayNode();
        for (DataFileMeta file : files) {
            result.addObject().put("name", file.fileName()).put("level", file.level()).put("rows", file.rowCount());
        }
        return result;
    }

    private static long cpuNanos() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
                .getProcessCpuTime();
    }

    private Compactions() {}
}
