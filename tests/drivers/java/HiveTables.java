import java.util.Map;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.options.Options;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.table.FileStoreTable;

/** Tables by their name in a Hive metastore, through Paimon's own catalog, opened anew for every request. */
final class HiveTables {
    private interface Use<T> {
        T of(Catalog catalog, Identifier name) throws Exception;
    }

    static FileStoreTable open(JsonNode request) {
        try {
            return in(request, (catalog, name) -> (FileStoreTable) catalog.getTable(name));
        } catch (Exception failure) {
            throw new IllegalStateException(failure);
        }
    }

    static JsonNode create(JsonNode request) throws Exception {
        return in(
                request,
                (catalog, name) -> {
                    catalog.createDatabase(name.getDatabaseName(), true);
                    catalog.createTable(name, Tables.stated(request), false);
                    return described(catalog, name);
                });
    }

    static JsonNode alter(JsonNode request) throws Exception {
        return in(
                request,
                (catalog, name) -> {
                    catalog.alterTable(name, Tables.changes(request), false);
                    return described(catalog, name);
                });
    }

    private static JsonNode described(Catalog catalog, Identifier name) throws Exception {
        FileStoreTable table = (FileStoreTable) catalog.getTable(name);
        return PaimonDriver.JSON
                .createObjectNode()
                .put("location", table.location().toUri().getPath())
                .put("schema", table.schema().id());
    }

    private static <T> T in(JsonNode request, Use<T> use) throws Exception {
        Map<String, String> settings = Tables.texts(request.required("catalog"));
        settings.put("metastore", "hive");
        settings.put("uri", request.required("metastore").asText());
        CatalogContext context = CatalogContext.create(Options.fromMap(settings));
        try (Catalog catalog = CatalogFactory.createCatalog(context)) {
            return use.of(catalog, Identifier.fromString(request.required("table").asText()));
        }
    }

    private HiveTables() {}
}
