import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.fs.FileIO;
import org.apache.paimon.fs.Path;
import org.apache.paimon.fs.local.LocalFileIO;
import org.apache.paimon.options.Options;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.schema.SchemaChange;
import org.apache.paimon.schema.SchemaManager;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.FileStoreTableFactory;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypeJsonParser;

/** Tables by path: opened anew for every request, so that commits of other engines are always seen. */
final class Tables {
    private static FileIO files(Path path) {
        if (path.toUri().getScheme() == null) {
            return LocalFileIO.create();
        }
        try {
            return FileIO.get(path, CatalogContext.create(new Options()));
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    /** The folder of a branch's metadata, branch/branch-(name) of its table, stands for the branch. */
    static FileStoreTable open(JsonNode request) {
        if (request.has("metastore")) {
            return HiveTables.open(request);
        }
        Path path = path(request);
        if (!path.getParent().getName().equals("branch") || !path.getName().startsWith("branch-")) {
            return FileStoreTableFactory.create(files(path), path);
        }
        return FileStoreTableFactory.create(files(path), path.getParent().getParent())
                .switchToBranch(path.getName().substring("branch-".length()));
    }

    /** The table with the request's "options" on top, as a query or a job would set them. */
    static FileStoreTable openWithOptions(JsonNode request) {
        return open(request).copy(texts(request.path("options")));
    }

    static JsonNode create(JsonNode request) throws Exception {
        new SchemaManager(files(path(request)), path(request)).createTable(stated(request));
        return schema(request);
    }

    static Schema stated(JsonNode request) throws Exception {
        Schema.Builder schema = Schema.newBuilder();
        for (JsonNode column : request.required("columns")) {
            schema.column(column.get(0).asText(), type(column.get(1).asText()));
        }
        schema.partitionKeys(list(request.path("partition_keys")));
        schema.primaryKey(list(request.path("primary_keys")));
        schema.options(texts(request.path("options")));
        return schema.build();
    }

    static JsonNode alter(JsonNode request) throws Exception {
        new SchemaManager(files(path(request)), path(request)).commitChanges(changes(request));
        return schema(request);
    }

    static List<SchemaChange> changes(JsonNode request) throws Exception {
        List<SchemaChange> changes = new ArrayList<>();
        for (JsonNode change : request.required("changes")) {
            changes.add(change(change));
        }
        return changes;
    }

    static JsonNode schema(JsonNode request) throws Exception {
        // As it is on disk: opening a table adds its path to the options.
        String text = new SchemaManager(files(path(request)), path(request)).latestOrThrow("no schema in " + path(request)).toString();
        return PaimonDriver.JSON.readTree(text);
    }

    private static SchemaChange change(JsonNode change) throws java.io.IOException {
        String option = change.path("name").asText();
        // A dot leads into a nested column.
        String[] name = option.split("\\.");
        switch (change.required("change").asText()) {
            case "add_column":
                return SchemaChange.addColumn(name, type(change.required("type").asText()), null, null);
            case "rename_column":
                return SchemaChange.renameColumn(name, change.required("to").asText());
            case "drop_column":
                return SchemaChange.dropColumn(name);
            case "change_type":
                return SchemaChange.updateColumnType(name, type(change.required("type").asText()), false);
            case "set_option":
                return SchemaChange.setOption(option, change.required("value").asText());
            case "remove_option":
                return SchemaChange.removeOption(option);
            default:
                throw new IllegalArgumentException("schema change: unknown kind in " + change);
        }
    }

    static DataType type(String text) throws java.io.IOException {
        if (text.startsWith("{")) {
            return DataTypeJsonParser.parseDataType(PaimonDriver.JSON.readTree(text));
        }
        return DataTypeJsonParser.parseAtomicTypeSQLString(text);
    }

    static Path path(JsonNode request) {
        return new Path(request.required("table").asText());
    }

    static List<String> list(JsonNode array) {
        List<String> result = new ArrayList<>();
        array.forEach(item -> result.add(item.asText()));
        return result;
    }

    static Map<String, String> texts(JsonNode object) {
        Map<String, String> result = new TreeMap<>();
        for (Iterator<Map.Entry<String, JsonNode>> it = object.fields(); it.hasNext(); ) {
            Map.Entry<String, JsonNode> entry = it.next();
            result.put(entry.getKey(), entry.getValue().asText());
        }
        return result;
    }

    private Tables() {}
}
