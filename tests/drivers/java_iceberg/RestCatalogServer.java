package org.apache.iceberg.rest;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.NamespaceNotEmptyException;
import org.apache.iceberg.exceptions.NoSuchNamespaceException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.rest.requests.CreateNamespaceRequest;
import org.apache.iceberg.rest.requests.CreateTableRequest;
import org.apache.iceberg.rest.requests.RegisterTableRequest;
import org.apache.iceberg.rest.requests.UpdateTableRequest;
import org.apache.iceberg.rest.responses.ConfigResponse;
import org.apache.iceberg.rest.responses.ErrorResponse;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper;

/** Iceberg's REST protocol over another catalog: its own handlers, its own JSON, and the JDK's HTTP server. */
public final class RestCatalogServer {
    private static final ObjectMapper MAPPER = RESTObjectMapper.mapper();

    private final Catalog catalog;

    private RestCatalogServer(Catalog catalog) {
        this.catalog = catalog;
    }

    /** Serves on a free port of the loopback interface until the process ends; returns the port. */
    public static int serve(Catalog catalog) throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0), 0);
        ExecutorService threads =
                Executors.newFixedThreadPool(
                        4,
                        task -> {
                            Thread thread = new Thread(task);
                            thread.setDaemon(true);
                            return thread;
                        });
        server.setExecutor(threads);
        server.createContext("/v1/", new RestCatalogServer(catalog)::handle);
        server.start();
        return server.getAddress().getPort();
    }

    private void handle(HttpExchange exchange) throws IOException {
        try (exchange) {
            int code = 200;
            Object answer;
            try {
                answer = answer(exchange);
                code = answer == null ? 204 : 200;
            } catch (RuntimeException failure) {
                code = code(failure);
                answer =
                        ErrorResponse.builder()
                                .responseCode(code)
                                .withType(failure.getClass().getSimpleName())
                                .withMessage(failure.getMessage())
                                .build();
            }
            byte[] body = answer == null ? new byte[0] : MAPPER.writeValueAsBytes(answer);
            exchange.getResponseHeaders().add("Content-Type", "application/json");
            boolean empty = body.length == 0 || exchange.getRequestMethod().equals("HEAD");
            exchange.sendResponseHeaders(code, empty ? -1 : body.length);
            if (!empty) {
                exchange.getResponseBody().write(body);
            }
        }
    }

    private static int code(RuntimeException failure) {
        if (failure instanceof NoSuchTableException || failure instanceof NoSuchNamespaceException) {
            return 404;
        }
        if (failure instanceof AlreadyExistsException
                || failure instanceof CommitFailedException
                || failure instanceof NamespaceNotEmptyException) {
            return 409;
        }
        if (failure instanceof IllegalArgumentException) {
            return 400;
        }
        return failure instanceof UnsupportedOperationException ? 406 : 500;
    }

    private Object answer(HttpExchange exchange) throws IOException {
        String method = exchange.getRequestMethod();
        List<String> path =
                Arrays.stream(exchange.getRequestURI().getRawPath().substring("/v1/".length()).split("/"))
                        .map(part -> URLDecoder.decode(part, StandardCharsets.UTF_8))
                        .toList();
        if (path.get(0).equals("config")) {
            return ConfigResponse.builder().build();
        }
        if (!path.get(0).equals("namespaces")) {
            throw new UnsupportedOperationException(method + " " + path);
        }
        if (path.size() == 1) {
            return namespaces(method, exchange);
        }
        Namespace namespace = Namespace.of(path.get(1).split("\u001f"));
        return switch (path.size()) {
            case 2 -> namespace(method, namespace);
            case 3 -> tables(path.get(2), method, namespace, exchange);
            case 4 -> table(method, TableIdentifier.of(namespace, path.get(3)), exchange);
            // Scan reports.
            default -> null;
        };
    }

    private Object namespaces(String method, HttpExchange exchange) throws IOException {
        SupportsNamespaces namespaces = (SupportsNamespaces) catalog;
        return method.equals("POST")
                ? CatalogHandlers.createNamespace(namespaces, body(exchange, CreateNamespaceRequest.class))
                : CatalogHandlers.listNamespaces(namespaces, Namespace.empty());
    }

    private Object namespace(String method, Namespace namespace) {
        SupportsNamespaces namespaces = (SupportsNamespaces) catalog;
        if (method.equals("DELETE")) {
            CatalogHandlers.dropNamespace(namespaces, namespace);
            return null;
        }
        return CatalogHandlers.loadNamespace(namespaces, namespace);
    }

    private Object tables(String what, String method, Namespace namespace, HttpExchange exchange) throws IOException {
        if (what.equals("register")) {
            return CatalogHandlers.registerTable(catalog, namespace, body(exchange, RegisterTableRequest.class));
        }
        if (method.equals("GET")) {
            return CatalogHandlers.listTables(catalog, namespace);
        }
        CreateTableRequest request = body(exchange, CreateTableRequest.class);
        return request.stageCreate()
                ? CatalogHandlers.stageTableCreate(catalog, namespace, request)
                : CatalogHandlers.createTable(catalog, namespace, request);
    }

    private Object table(String method, TableIdentifier table, HttpExchange exchange) throws IOException {
        switch (method) {
            case "POST":
                return CatalogHandlers.updateTable(catalog, table, body(exchange, UpdateTableRequest.class));
            case "DELETE":
                CatalogHandlers.dropTable(catalog, table);
                return null;
            default:
                return CatalogHandlers.loadTable(catalog, table, RESTCatalogProperties.SnapshotMode.ALL);
        }
    }

    private static <T> T body(HttpExchange exchange, Class<T> type) throws IOException {
        return MAPPER.readValue(exchange.getRequestBody(), type);
    }
}
