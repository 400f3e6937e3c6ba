import PostgreSQL
import Testing

@Suite("URIs of databases")
struct DatabaseURITests {
    @Test(
        "A password in the URI is rejected with a text that names the alternatives and not the password",
        arguments: [
            "postgresql://user:hunter2@host/db", "postgres://user:hunter2@host",
            "postgresql://host/db?password=hunter2",
            "postgresql://host/db?pass%77ord=hunter2", "postgresql://host/db?sslpassword=hunter2",
            "postgresql://h1,h2/db?user=a&password=hunter2",
        ])
    func password(text: String) {
        let error = #expect(throws: DatabaseURI.ParsingError.self) { try DatabaseURI(parsing: text) }
        let message = error?.description ?? ""
        #expect(message.contains("PGPASSFILE") && message.contains("PGPASSWORD"))
        #expect(!message.contains("hunter2"))
    }

    @Test(
        "Invalid URIs are rejected, and the text does not repeat a password",
        arguments: [
            "postgresql://user:hunter2@ho st:1:2/db", "postgresql://user:hunter2%@host", "host=a password=hunter2",
            "postgresql://host/db?password=hunter2&unknown=1", "mysql://user:hunter2@host", "hunter2", "",
            "postgresql://user:hunter2@[::1", "postgresql://host?password",
        ])
    func invalid(text: String) {
        let error = #expect(throws: DatabaseURI.ParsingError.self) { try DatabaseURI(parsing: text) }
        #expect(error.map { !$0.description.isEmpty && !$0.description.contains("hunter2") } == true)
    }

    @Test("The reason for the rejection of a URI without secrets is libpq's")
    func reason() {
        let error = #expect(throws: DatabaseURI.ParsingError.self) {
            try DatabaseURI(parsing: "postgresql://host/db?unknown=1")
        }
        #expect(error?.description.contains("unknown") == true)
    }

    @Test(
        "The text of a URI has hosts, ports and the name of the database",
        arguments: [
            ("postgresql://user@host:5433/name?sslmode=verify-full", "postgresql://host:5433/name"),
            ("postgresql://h1:1,h2:2/name", "postgresql://h1,h2:1,2/name"),
            ("postgres:///name?host=/run/postgresql", "postgresql:///run/postgresql/name"),
        ])
    func description(text: String, expected: String) throws {
        #expect(try DatabaseURI(parsing: text).description == expected)
    }
}
