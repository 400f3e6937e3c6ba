import Digests
import HTTPSemantics
import Testing

@testable import TransferServer

@Suite("The cookie of a session")
struct SessionCookieTests {
    private static let token = "token-of-anna-0001"
    private static let text = """
        anna token-of-anna-0001
        anna token-of-anna-0002 write
        ben token-of-ben-00001 read prefix=/files/b/
        """
    private static let now: Int64 = 1_800_000_000

    private func value(
        _ token: String = Self.token, of principal: String = "anna", expiry: Int64 = Self.now + 900
    ) throws -> String {
        try #require(SessionCookie.value(forToken: token, of: principal, expiry: expiry))
    }

    private func found(
        _ value: String, in text: String = Self.text, now: Int64 = Self.now
    ) throws -> TokenList.Token? {
        SessionCookie.token(
            in: ["Cookie": "\(SessionCookie.name)=\(value)"], of: try TokenList(parsing: text), now: now)
    }

    @Test("a cookie is valid for the token that it was made for, among several of the same principal")
    func roundTrip() throws {
        for token in ["token-of-anna-0001", "token-of-anna-0002"] {
            #expect(try found(value(token))?.credential == TokenList.digest(token).hexadecimal)
        }
        #expect(try found(value("token-of-ben-00001", of: "ben"))?.name == "ben")
        // All servers with the same token file accept it, whether the file has tokens or digests.
        let digest = TokenList.digest(Self.token).hexadecimal
        #expect(try found(value(), in: "anna sha256:\(digest) read")?.scopes == [.read])
    }

    @Test("a cookie ends with its time, and with the line of its token")
    func ends() throws {
        #expect(try found(value(), now: Self.now + 899) != nil)
        #expect(try found(value(), now: Self.now + 900) == nil)
        #expect(try found(value(), in: "anna token-of-anna-0002") == nil)
        #expect(try found(value(), in: "berta token-of-anna-0001") == nil)
        #expect(try found(value(), in: "") == nil)
    }

    @Test("a cookie with any other byte is not valid")
    func altered() throws {
        let valid = Array(try value().utf8)
        for index in valid.indices {
            for replacement in "A0:=-".utf8 where valid[index] != replacement {
                var altered = valid
                altered[index] = replacement
                #expect(try found(String(decoding: altered, as: UTF8.self)) == nil, "byte \(index): \(replacement)")
            }
        }
        for text in ["", ":", ":::", "anna", "anna:1:a:b", "anna:\(Self.now + 900)::"] {
            #expect(try found(text) == nil, "\(text)")
        }
        let parts = try value().split(separator: ":").map(String.init)
        #expect(try found([parts[0], "\(Self.now + 9000)", parts[2], parts[3]].joined(separator: ":")) == nil)
        #expect(try found([parts[0], "+\(parts[1])", parts[2], parts[3]].joined(separator: ":")) == nil)
    }

    @Test("the digests of a token file are not enough to make a cookie")
    func forged() throws {
        // Everything that the owner of the file could compute: the mask is known, the token is not.
        let digest = TokenList.digest(Self.token)
        for guess in [digest.hexadecimal, String(decoding: [UInt8](repeating: 0x41, count: 18), as: UTF8.self)] {
            #expect(try found(value(guess)) == nil)
        }
        let parts = try value().split(separator: ":").map(String.init)
        let code = MessageAuthentication.sha256(
            of: Array("onward-session code anna \(Self.now + 900)".utf8), key: digest)
        #expect(try found([parts[0], parts[1], digest.base64, code.base64].joined(separator: ":")) == nil)
    }

    @Test("a cookie does not contain its token, nor its digest")
    func opaque() throws {
        let value = try value()
        for text in [
            Self.token, Array(Self.token.utf8).base64, TokenList.digest(Self.token).hexadecimal,
            TokenList.digest(Self.token).base64,
        ] {
            #expect(!value.contains(text))
        }
    }

    @Test("a token that is too long for a cookie has none")
    func length() throws {
        let longest = String(repeating: "x", count: SessionCookie.maxTokenLength)
        #expect(SessionCookie.value(forToken: longest + "x", of: "anna", expiry: 1) == nil)
        let value = try value(longest)
        #expect(SessionCookie.field(value, path: "/files/", isSecure: true).utf8.count < 4096)
        #expect(try found(value, in: "anna \(longest)") != nil)
    }

    @Test(
        "the cookie is found among others, and removed without a change of others",
        arguments: [
            ("onward-session=V", true, nil), ("a=1; onward-session=V; b=2", true, "a=1; b=2"),
            ("onward-session=V; b=2", true, "b=2"), ("a=1;onward-session=V", true, "a=1"),
            ("a=1; onward-session = V", false, "a=1"),
            ("a=1;\tonward-session=V;  b=\"2; 3\"", true, "a=1;  b=\"2; 3\""),
            ("onward-session=x; onward-session=V", true, nil), ("onward-session", false, nil),
            ("a=onward-session=V", false, "a=onward-session=V"), ("Onward-Session=V", false, "Onward-Session=V"),
            ("onward-sessions=V", false, "onward-sessions=V"), ("a=1; b", false, "a=1; b"),
            ("a=1;\u{301}onward-session=V", false, "a=1;\u{301}onward-session=V"), ("onward-session=V; ", true, nil),
        ] as [(String, Bool, String?)])
    func others(line: String, isFound: Bool, remaining: String?) throws {
        let line = line.replacing("V", with: try value())
        let remaining = remaining?.replacing("V", with: try value())
        let fields: Fields = ["Accept": "*/*", "cookie": line, "Cookie": "c=3"]
        let list = try TokenList(parsing: Self.text)
        #expect((SessionCookie.token(in: fields, of: list, now: Self.now) != nil) == isFound)
        let kept = SessionCookie.removed(from: fields)
        #expect(kept.values("Cookie") == [remaining, "c=3"].compactMap { $0 })
        #expect(kept["Accept"] == "*/*")
        #expect(SessionCookie.token(in: kept, of: list, now: Self.now) == nil)
    }

    @Test("the field keeps scripts, other sites and plain connections from the cookie")
    func field() {
        #expect(
            SessionCookie.field("v", path: "/in/files/", isSecure: false)
                == "onward-session=v; Path=/in/files/; Max-Age=900; HttpOnly; SameSite=Strict")
        #expect(
            SessionCookie.field(nil, path: "/a;b/files/", isSecure: true)
                == "onward-session=; Path=/a%3Bb/files/; Max-Age=0; HttpOnly; SameSite=Strict; Secure")
    }
}
