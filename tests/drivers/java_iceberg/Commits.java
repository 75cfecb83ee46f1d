import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.OverwriteFiles;
import org.apache.iceberg.RewriteFiles;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.SnapshotUpdate;
import org.apache.iceberg.Table;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.iceberg.util.ContentFileUtil;

/** Written files until they are committed, and the commit of several handles of them at once. */
final class Commits {
    record Pending(List<DataFile> data, List<DeleteFile> deletes, List<DeleteFile> replaced, Long base) {}

    private static final Map<Integer, Pending> PENDING = new HashMap<>();

    static JsonNode pend(Table table, List<DataFile> data, List<DeleteFile> deletes) throws Exception {
        return pend(table, data, deletes, List.of());
    }

    static JsonNode pend(Table table, List<DataFile> data, List<DeleteFile> deletes, List<DeleteFile> replaced)
            throws Exception {
        Long base = table.currentSnapshot() == null ? null : table.currentSnapshot().snapshotId();
        PENDING.put(PENDING.size(), new Pending(data, deletes, replaced, base));
        ObjectNode found = IcebergDriver.JSON.createObjectNode().put("handle", PENDING.size() - 1);
        var files = found.putArray("files");
        for (DataFile file : data) {
            files.add(Metadata.file(file, table));
        }
        for (DeleteFile file : deletes) {
            files.add(Metadata.file(file, table));
        }
        return found;
    }

    static Pending pending(JsonNode handle) {
        Pending found = PENDING.get(handle.asInt());
        if (found == null) {
            throw new IllegalArgumentException("handle: found " + handle);
        }
        return found;
    }

    /**
     * Kinds are append, delta (RowDelta), rewrite (RewriteFiles) and overwrite (OverwriteFiles). `remove` names live
     * files by path; `base` is the snapshot that the commit is validated from; `branch` and `summary` are optional.
     */
    static JsonNode commit(JsonNode request) throws Exception {
        Table table = Tables.load(request);
        List<Pending> handles = new ArrayList<>();
        request.required("handles").forEach(handle -> handles.add(pending(handle)));
        Set<String> paths = new HashSet<>();
        request.path("remove").forEach(path -> paths.add(path.asText()));
        Live live = paths.isEmpty() ? new Live(List.of(), List.of()) : live(table, request, paths);
        if (live.count() < paths.size()) {
            throw new IllegalArgumentException("remove: not all of these files are live: " + paths);
        }
        String kind = request.required("kind").asText();
        SnapshotUpdate<?> update =
                switch (kind) {
                    case "append" -> append(table, handles);
                    case "delta" -> delta(table, handles, live, request);
                    case "rewrite" -> rewrite(table, handles, live, request);
                    case "overwrite" -> overwrite(table, handles, live);
                    default -> throw new IllegalArgumentException("kind: found " + kind);
                };
        Tables.texts(request.path("summary")).forEach(update::set);
        if (request.hasNonNull("branch")) {
            update.toBranch(request.get("branch").asText());
        }
        update.commit();
        table.refresh();
        String branch = request.path("branch").asText("main");
        return IcebergDriver.JSON.createObjectNode().put("snapshot", table.snapshot(branch).snapshotId());
    }

    record Live(List<DataFile> data, List<DeleteFile> deletes) {
        int count() {
            Set<String> paths = new HashSet<>();
            data.forEach(file -> paths.add(file.location()));
            deletes.forEach(file -> paths.add(file.location()));
            return paths.size();
        }
    }

    private static Live live(Table table, JsonNode request, Set<String> paths) throws Exception {
        Live found = new Live(new ArrayList<>(), new ArrayList<>());
        String branch = request.path("branch").asText("main");
        for (Metadata.Entry entry : Metadata.live(table, table.snapshot(branch))) {
            ContentFile<?> file = entry.file();
            if (paths.contains(file.location())) {
                if (file instanceof DataFile data) {
                    found.data().add(data);
                } else {
                    found.deletes().add((DeleteFile) file);
                }
            }
        }
        return found;
    }

    private static AppendFiles append(Table table, List<Pending> handles) {
        AppendFiles append = table.newAppend();
        handles.forEach(handle -> handle.data().forEach(append::appendFile));
        return append;
    }

    private static RowDelta delta(Table table, List<Pending> handles, Live live, JsonNode request) {
        RowDelta delta = table.newRowDelta();
        for (Pending handle : handles) {
            handle.data().forEach(delta::addRows);
            handle.deletes().forEach(delta::addDeletes);
            handle.replaced().forEach(delta::removeDeletes);
            if (!handle.replaced().isEmpty()) {
                // They are in place of what was there then.
                delta.validateFromSnapshot(handle.base());
            }
        }
        live.data().forEach(delta::removeRows);
        live.deletes().forEach(delta::removeDeletes);
        if (request.hasNonNull("base")) {
            delta.validateFromSnapshot(request.get("base").asLong());
            delta.validateNoConflictingDataFiles();
            delta.validateNoConflictingDeleteFiles();
            // As Spark's DELETE: what new positions speak of must still be there.
            delta.validateDataFilesExist(targets(handles));
        }
        return delta;
    }

    private static List<CharSequence> targets(List<Pending> handles) {
        List<CharSequence> found = new ArrayList<>();
        for (Pending handle : handles) {
            for (DeleteFile delete : handle.deletes()) {
                CharSequence target = ContentFileUtil.referencedDataFile(delete);
                if (target != null) {
                    found.add(target);
                }
            }
        }
        return found;
    }

    private static RewriteFiles rewrite(Table table, List<Pending> handles, Live live, JsonNode request) {
        RewriteFiles rewrite = table.newRewrite();
        for (Pending handle : handles) {
            handle.data().forEach(rewrite::addFile);
            handle.deletes().forEach(rewrite::addFile);
            handle.replaced().forEach(rewrite::deleteFile);
        }
        live.data().forEach(rewrite::deleteFile);
        live.deletes().forEach(rewrite::deleteFile);
        if (request.hasNonNull("base")) {
            rewrite.validateFromSnapshot(request.get("base").asLong());
        }
        if (request.hasNonNull("sequence")) {
            rewrite.dataSequenceNumber(request.get("sequence").asLong());
        }
        return rewrite;
    }

    private static OverwriteFiles overwrite(Table table, List<Pending> handles, Live live) {
        OverwriteFiles overwrite = table.newOverwrite();
        handles.forEach(handle -> handle.data().forEach(overwrite::addFile));
        live.data().forEach(overwrite::deleteFile);
        return overwrite;
    }

    private Commits() {}
}
