import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.paimon.CoreOptions;
import org.apache.paimon.compact.CompactResult;
import org.apache.paimon.compact.CompactUnit;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.BinaryRowWriter;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.deletionvectors.BitmapDeletionVector;
import org.apache.paimon.deletionvectors.BucketedDvMaintainer;
import org.apache.paimon.deletionvectors.DeletionVector;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.manifest.FileSource;
import org.apache.paimon.mergetree.Levels;
import org.apache.paimon.mergetree.SortedRun;
import org.apache.paimon.mergetree.compact.AbstractCompactRewriter;
import org.apache.paimon.mergetree.compact.CompactRewriter;
import org.apache.paimon.mergetree.compact.CompactStrategy;
import org.apache.paimon.mergetree.compact.EarlyFullCompaction;
import org.apache.paimon.mergetree.compact.ForceUpLevel0Compaction;
import org.apache.paimon.mergetree.compact.LookupMergeTreeCompactRewriter;
import org.apache.paimon.mergetree.compact.MergeTreeCompactManager;
import org.apache.paimon.mergetree.compact.OffPeakHours;
import org.apache.paimon.mergetree.compact.UniversalCompaction;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.paimon.stats.SimpleStats;
import org.apache.paimon.table.FileStoreTable;

/** A bucket's files, all made up -> what Paimon's own classes would pick, and do to each file. Nothing is read. */
final class Picks {
    private static final Comparator<InternalRow> KEYS = Comparator.comparingInt(row -> row.getInt(0));

    static JsonNode pick(JsonNode request) throws Exception {
        FileStoreTable table = Tables.open(request);
        CoreOptions options = new CoreOptions(Tables.texts(request.path("options")));
        List<DataFileMeta> files = new ArrayList<>();
        Map<String, DeletionVector> vectors = new HashMap<>();
        for (JsonNode file : request.required("files")) {
            files.add(file(file));
            if (file.path("vector").asBoolean()) {
                vectors.put(file.required("name").asText(), new BitmapDeletionVector());
            }
        }
        BucketedDvMaintainer maintainer = !options.deletionVectorsEnabled() ? null :
                BucketedDvMaintainer.factory(table.store().newIndexFileHandler()).create(BinaryRow.EMPTY_ROW, 0, vectors);
        Levels levels = new Levels(KEYS, files, options.numLevels());
        Optional<CompactUnit> unit =
                request.path("full").asBoolean()
                        ? CompactStrategy.pickFullCompaction(
                                levels.numberOfLevels(), levels.levelSortedRuns(), null, maintainer, false)
                        : minor(levels, options);
        boolean full = request.path("full").asBoolean();
        return unit.isPresent() ? describe(unit.get(), full, levels, options, maintainer) : null;
    }

    /** A gentle writer picks once per flush; here every level-0 file was one. */
    private static Optional<CompactUnit> minor(Levels levels, CoreOptions options) {
        CompactStrategy strategy = strategy(levels, options);
        Optional<CompactUnit> unit = Optional.empty();
        for (int i = 0; i < Math.max(1, levels.level0().size()) && !unit.isPresent(); i++) {
            unit = strategy.pick(levels.numberOfLevels(), levels.levelSortedRuns());
        }
        // MergeTreeCompactManager.triggerCompaction
        return unit.filter(found -> !found.files().isEmpty())
                .filter(found -> found.files().size() > 1 || found.files().get(0).level() != found.outputLevel());
    }

    /** MergeTreeCompactManagerFactory.createCompactStrategy */
    private static CompactStrategy strategy(Levels levels, CoreOptions options) {
        UniversalCompaction universal =
                new UniversalCompaction(
                        options.maxSizeAmplificationPercent(),
                        options.sortedRunSizeRatio(),
                        options.numSortedRunCompactionTrigger(),
                        EarlyFullCompaction.create(options, lastFull(levels, options)),
                        OffPeakHours.create(options));
        if (!options.needLookup() && !options.compactionForceUpLevel0()) {
            return universal;
        }
        boolean gentle = options.needLookup() && options.lookupCompact() == CoreOptions.LookupCompactMode.GENTLE;
        return new ForceUpLevel0Compaction(universal, gentle ? options.lookupCompactMaxInterval() : null);
    }

    /** MergeTreeCompactManagerFactory.estimateLastFullCompactionTime */
    private static Long lastFull(Levels levels, CoreOptions options) {
        return levels.allFiles().stream()
                .filter(file -> file.level() == options.numLevels() - 1)
                .map(DataFileMeta::creationTimeEpochMillis)
                .max(Comparator.naturalOrder())
                .orElse(null);
    }

    /** What MergeTreeCompactManager asks of its rewriter for this unit. */
    private static ObjectNode describe(
            CompactUnit unit, boolean full, Levels levels, CoreOptions options, BucketedDvMaintainer maintainer)
            throws Exception {
        ObjectNode result = PaimonDriver.JSON.createObjectNode().put("level", unit.outputLevel());
        result.set("files", names(unit.files()));
        result.putArray("steps");
        CompactRewriter recorder =
                maintainer == null ? new PlainRecorder(result) : new LookupRecorder(options, maintainer, result);
        MergeTreeCompactManager manager =
                new MergeTreeCompactManager(
                        new SinglePick(), levels, (numLevels, runs) -> Optional.of(unit), KEYS,
                        options.compactionFileSize(true), options.numSortedRunStopTrigger(), recorder, null, maintainer,
                        true, options.needLookup(), null, false, false, "");
        manager.triggerCompaction(full);
        manager.getCompactionResult(true);
        return result;
    }

    private static void note(ObjectNode result, String what, List<DataFileMeta> files) {
        ObjectNode step = result.withArray("steps").addObject().put("kind", what);
        step.set("files", names(files));
    }

    /** Notes what it is asked to do instead of doing it. */
    private static final class LookupRecorder extends LookupMergeTreeCompactRewriter<Object> {
        private final ObjectNode result;

        LookupRecorder(CoreOptions options, BucketedDvMaintainer maintainer, ObjectNode result) {
            super(
                    options.numLevels() - 1, CoreOptions.MergeEngine.DEDUPLICATE, null, null, null, KEYS, null, null,
                    null, null, false, maintainer, options, null);
            this.result = result;
        }

        @Override
        public CompactResult rewrite(int outputLevel, boolean dropDelete, List<List<SortedRun>> sections) {
            result.put("drops", dropDelete);
            note(result, "merge and rewrite", extractFilesFromSections(sections));
            return new CompactResult();
        }

        @Override
        public CompactResult upgrade(int outputLevel, DataFileMeta file) {
            boolean rewrite = upgradeStrategy(outputLevel, file) == UpgradeStrategy.CHANGELOG_WITH_REWRITE;
            note(result, rewrite ? "merge and rewrite" : "upgrade in place", List.of(file));
            return new CompactResult();
        }

        @Override
        public void close() {}
    }

    /** The same without a lookup. */
    private static final class PlainRecorder extends AbstractCompactRewriter {
        private final ObjectNode result;

        PlainRecorder(ObjectNode result) {
            this.result = result;
        }

        @Override
        public CompactResult rewrite(int outputLevel, boolean dropDelete, List<List<SortedRun>> sections) {
            result.put("drops", dropDelete);
            note(result, "merge and rewrite", extractFilesFromSections(sections));
            return new CompactResult();
        }

        @Override
        public CompactResult upgrade(int outputLevel, DataFileMeta file) {
            note(result, "upgrade in place", List.of(file));
            return new CompactResult();
        }
    }

    private static ArrayNode names(List<DataFileMeta> files) {
        ArrayNode result = PaimonDriver.JSON.createArrayNode();
        files.forEach(file -> result.add(file.fileName()));
        return result;
    }

    private static DataFileMeta file(JsonNode file) {
        long sequence = file.required("sequence").asLong();
        return DataFileMeta.create(
                file.required("name").asText(),
                file.required("bytes").asLong(),
                10,
                key(file.required("low").asInt()),
                key(file.required("high").asInt()),
                SimpleStats.EMPTY_STATS,
                SimpleStats.EMPTY_STATS,
                sequence,
                sequence,
                0,
                file.required("level").asInt(),
                List.of(),
                Timestamp.fromEpochMillis(System.currentTimeMillis() - file.path("age").asLong()),
                file.path("deletes").isNull() ? null : file.path("deletes").asLong(),
                null,
                FileSource.APPEND,
                null,
                null,
                null,
                null);
    }

    private static BinaryRow key(int value) {
        BinaryRow row = new BinaryRow(1);
        BinaryRowWriter writer = new BinaryRowWriter(row);
        writer.writeInt(0, value);
        writer.complete();
        return row;
    }

    private Picks() {}
}
