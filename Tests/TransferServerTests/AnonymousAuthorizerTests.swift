import HTTPSemantics
import Testing

@testable import TransferServer

@Suite("Anonymous service")
struct AnonymousAuthorizerTests {
    private func code(
        _ method: Method, target: String = "/files/x", _ fields: Fields, version: ProtocolVersion = .http11,
        authorizer: AnonymousAuthorizer = AnonymousAuthorizer(isAnonymousAllowed: false, allowedOrigins: [])
    ) throws -> String? {
        let head = RequestHead(method: method, target: target, version: version, fields: fields)
        let target = try #require(RequestTarget(parsing: target))
        do throws(AuthorizationRefusal) {
            _ = try authorizer.identify(head, target: target)
            return nil
        } catch {
            return error.problem.code
        }
    }

    @Test(
        "Anonymous requests to the names of this machine are allowed",
        arguments: ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:8080"])
    func ownNames(host: String) throws {
        #expect(try code(.get, ["Host": host]) == nil)
    }

    @Test(
        "Anonymous requests to any other name are refused, which prevents DNS rebinding",
        arguments: ["evil.example", "localhost.evil.example", "127.0.0.2", "[::]"])
    func foreignNames(host: String) throws {
        #expect(try code(.get, ["Host": host]) == "foreign-host")
    }

    @Test("The authority of an absolute target is checked instead of Host")
    func absoluteTarget() throws {
        #expect(try code(.get, target: "http://evil.example/files/x", ["Host": "localhost"]) == "foreign-host")
        #expect(try code(.get, target: "http://localhost/files/x", ["Host": "localhost"]) == nil)
    }

    @Test(
        "Anonymous requests through a proxy are refused",
        arguments: ["Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Real-IP", "Via"])
    func proxies(name: String) throws {
        var fields: Fields = ["Host": "localhost"]
        fields.append(name, "1.1 x")
        #expect(try code(.get, fields) == "forwarded-request")
    }

    @Test("Pages of foreign origins may only read; pages of the server's own and of allowed origins may also write")
    func origins() throws {
        let foreign: Fields = ["Host": "localhost:8080", "Origin": "https://evil.example"]
        #expect(try code(.post, foreign) == "foreign-origin")
        #expect(try code(.delete, foreign) == "foreign-origin")
        #expect(try code(.get, foreign) == nil)
        #expect(try code(.post, ["Host": "localhost:8080", "Origin": "null"]) == "foreign-origin")
        #expect(try code(.post, ["Host": "localhost:8080", "Origin": "http://localhost:9090"]) == "foreign-origin")
        #expect(try code(.post, ["Host": "localhost:8080", "Origin": "http://localhost:8080"]) == nil)
        let named = AnonymousAuthorizer(isAnonymousAllowed: false, allowedOrigins: ["https://evil.example"])
        #expect(try code(.post, foreign, authorizer: named) == nil)
    }

    @Test("With --allow-anonymous all requests are allowed")
    func allowed() throws {
        let open = AnonymousAuthorizer(isAnonymousAllowed: true, allowedOrigins: [])
        let fields: Fields = ["Host": "files.example", "Via": "1.1 proxy", "Origin": "https://evil.example"]
        #expect(try code(.post, fields, authorizer: open) == nil)
    }
}
