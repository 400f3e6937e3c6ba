import Foundation
import FoundationNetworking
import HTTPSemantics
import Testing

@testable import ResumableURLSession

@Suite("Cookies of a session")
struct CookieRulesTests {
    private func configuration() -> URLSessionConfiguration { .ephemeral }

    private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    private func rules(_ configuration: URLSessionConfiguration, request: URLRequest? = nil) -> CookieRules {
        CookieRules(SessionStorages(configuration), request: request)
    }

    @Test(
        "a cookie is sent to the host, the path and the scheme that it is for",
        arguments: [
            ("a=1", "http://www.example.com/dir/other", true),
            ("a=1", "http://www.example.com/dir", true),
            ("a=1", "http://www.example.com/", false),
            ("a=1; Path=/", "http://www.example.com/", true),
            ("a=1; Path=/x", "http://www.example.com/x", true),
            ("a=1; Path=/x", "http://www.example.com/x/y", true),
            ("a=1; Path=/x", "http://www.example.com/xy", false),
            ("a=1; Path=/", "http://example.com/", false),
            ("a=1; Path=/", "http://sub.www.example.com/", false),
            ("a=1; Path=/; Domain=example.com", "http://example.com/", true),
            ("a=1; Path=/; domain=.EXAMPLE.com", "http://other.example.com/", true),
            ("a=1; Path=/; Domain=example.com", "http://notexample.com/", false),
            ("a=1; Path=/; Domain=www.example.com", "http://sub.www.example.com/", true),
            ("a=1; Path=/; Domain=com", "http://other.com/", false),
            ("a=1; Path=/; Domain=evil.org", "http://evil.org/", false),
            ("a=1; Path=/; Secure", "http://www.example.com/", false),
            ("a=1; Path=/; Secure", "https://www.example.com/", true),
            ("a=1; Path=/; Max-Age=60", "http://www.example.com/", true),
            ("a=1; Path=/; Max-Age=0", "http://www.example.com/", false),
            ("a=1; Path=/; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "http://www.example.com/", true),
            ("a=1; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "http://www.example.com/", false),
            ("a=1; Path=/; Expires=Wed, 21-Oct-2037 07:28:00 GMT", "http://www.example.com/", true),
        ])
    func matching(field: String, target: String, isSent: Bool) throws {
        let rules = rules(configuration())
        rules.store(Fields([("Set-Cookie", field)]), from: try url("http://www.example.com/dir/page"))
        #expect(rules.field(for: try url(target)) == (isSent ? "a=1" : nil))
    }

    @Test("each field sets one cookie, even with a comma, and a later cookie replaces one with the same name and path")
    func fields() throws {
        let rules = rules(configuration())
        let target = try url("http://127.0.0.1:8080/a/b")
        rules.store(
            Fields([
                ("Set-Cookie", "x=1, y=2; Path=/"), ("set-cookie", "z=a=b; Path=/a"), ("Set-Cookie", "none"),
                ("Set-Cookie", "=2"), ("Set-Cookie", "empty=; Path=/"),
            ]), from: target)
        #expect(rules.field(for: target) == "z=a=b; empty=; x=1, y=2")
        rules.store(Fields([("Set-Cookie", "x=3; Path=/"), ("Set-Cookie", "z=; Path=/a; Max-Age=0")]), from: target)
        #expect(rules.field(for: target) == "empty=; x=3")
        #expect(rules.field(for: try url("http://127.0.0.1:9/")) == "empty=; x=3")
    }

    @Test("the configuration and the request can switch off sending, storing or both")
    func switches() throws {
        let target = try url("http://www.example.com/")
        let set = Fields([("Set-Cookie", "a=1")])
        let silent = configuration()
        silent.httpShouldSetCookies = false
        rules(silent).store(set, from: target)
        #expect(rules(silent).field(for: target) == nil)
        #expect(silent.httpCookieStorage?.cookies?.count == 1)
        let none = configuration()
        none.httpCookieStorage = nil
        rules(none).store(set, from: target)
        #expect(rules(none).field(for: target) == nil)
        let never = configuration()
        never.httpCookieAcceptPolicy = .never
        rules(never).store(set, from: target)
        #expect(never.httpCookieStorage?.cookies?.isEmpty == true)
        let other = configuration()
        rules(other).store(set, from: target)
        var request = URLRequest(url: target)
        #expect(rules(other, request: request).field(for: target) == "a=1")
        request.httpShouldHandleCookies = false
        #expect(rules(other, request: request).field(for: target) == nil)
        rules(other, request: request).store(Fields([("Set-Cookie", "b=1")]), from: target)
        #expect(other.httpCookieStorage?.cookies?.count == 1)
    }

    @Test(
        "with the policy for the main document, cookies of other hosts are not stored",
        arguments: [
            ("http://www.example.com/", "http://www.example.com/", true),
            ("http://www.example.com/", "http://example.com/", true),
            ("http://www.example.com/", "http://ads.example.com/", false),
            ("http://notexample.com/", "http://example.com/", false),
            (nil, "http://example.com/", true),
        ])
    func mainDocument(main: String?, target: String, isStored: Bool) throws {
        let configuration = configuration()
        configuration.httpCookieAcceptPolicy = .onlyFromMainDocumentDomain
        var request = URLRequest(url: try url(target))
        request.mainDocumentURL = main.flatMap { URL(string: $0) }
        let rules = rules(configuration, request: request)
        rules.store(Fields([("Set-Cookie", "a=1")]), from: try url(target))
        #expect((rules.field(for: try url(target)) != nil) == isStored)
    }
}
