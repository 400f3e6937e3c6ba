import Testing

@testable import PostgreSQL

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
            try DatabaseURI(parsing: "postgresql://host/db?unknown")
        }
        #expect(error?.description.contains("separator") == true)
    }

    @Test(
        "An unknown parameter is named, unless its name can be a part of a password",
        arguments: [
            ("postgresql://host/db?other=1", true), ("postgresql://user@host/db?other=hunter2", true),
            ("postgresql://user@host/db?sslmode=require&other=hunter2&more=1", true),
            ("postgresql://user:hunter2%40@host/db?other=1", true),
            ("postgresql://user:word?other=1@host/db?sslmode", false), ("postgresql://user:a/b?other=1@host/db", false),
            ("postgresql://user@host/db?password=hunter2&other=1", false),
            ("postgresql://user@host/db?pass%77ord=hunter2&other=1", false),
        ])
    func unknownParameter(text: String, isNamed: Bool) {
        let error = #expect(throws: DatabaseURI.ParsingError.self) { try DatabaseURI(parsing: text) }
        let message = error?.description ?? ""
        #expect(message.contains("the unknown parameter 'other'") == isNamed, "\(message)")
        #expect(!message.contains("hunter2") && message.contains("other") == isNamed, "\(message)")
    }

    @Test("A message of libpq is shown on one line, without tabs")
    func oneLine() {
        #expect("refused\n\tIs the server  running?\n\n".onOneLine == "refused; Is the server running?")
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
