import HTTPSemantics
import Testing

@Suite("WWW-Authenticate: challenges")
struct AuthenticationChallengeTests {
    private typealias Challenge = AuthenticationChallenge

    private func challenges(_ lines: String...) -> [AuthenticationChallenge] {
        AuthenticationChallenge.challenges(parsing: lines)
    }

    @Test("a field has several challenges, in one line and in several lines")
    func several() {
        // The example of RFC 9110 section 11.6.1.
        let example = "Basic realm=\"simple\", Newauth realm=\"apps\", type=1, title=\"Login to \\\"apps\\\"\""
        let basic = Challenge(scheme: "basic", parameters: ["realm": "simple"])
        let newauth = Challenge(
            scheme: "newauth", parameters: ["realm": "apps", "type": "1", "title": "Login to \"apps\""])
        #expect(challenges(example) == [basic, newauth])
        #expect(
            challenges("Newauth realm=apps,type=1,title=\"Login to \\\"apps\\\"\"", "BASIC Realm=simple") == [
                newauth, basic,
            ])
        #expect(challenges() == [] && challenges("", ", ,") == [])
    }

    @Test("a quoted string can contain commas, equals signs and names of schemes")
    func quoted() {
        #expect(
            challenges("Bearer realm=\"a, Basic realm=b\", error=\"x=y,\", Basic realm=\"\"") == [
                Challenge(scheme: "bearer", parameters: ["realm": "a, Basic realm=b", "error": "x=y,"]),
                Challenge(scheme: "basic", parameters: ["realm": ""]),
            ])
    }

    @Test("a scheme can have no parameters, a token68, or white space around equals signs and commas")
    func forms() {
        #expect(
            challenges("Negotiate, NTLM YWJj==,Digest\t,, X  a = b , c= \"d\" ,Y abc=") == [
                Challenge(scheme: "negotiate"), Challenge(scheme: "ntlm", token68: "YWJj=="),
                Challenge(scheme: "digest"), Challenge(scheme: "x", parameters: ["a": "b", "c": "d"]),
                Challenge(scheme: "y", token68: "abc="),
            ])
    }

    @Test(
        "a malformed line is skipped, and the other lines count",
        arguments: [
            "realm=\"a\"", "=x", "Basic realm", "Basic realm=", "Basic realm=\"a", "Basic realm=\"a\\",
            "Basic realm=\"a\"b",
            "Basic realm=a b=c", "Basic realm=a; charset=b", "Basic realm=a, realm=b", "Basic realm=a, REALM=b",
            "X abc==, realm=a", "X abc==def", "X abc=\"", "Bas(ic) realm=a", "Basic realm=\"a\u{7F}\"", "X a==, \u{0}",
            "\"Basic\" realm=a", "Basic\u{A0}realm=a",
        ])
    func malformed(line: String) {
        let expected = Challenge(scheme: "other", parameters: ["realm": "r"])
        let found = challenges("Other realm=r", line, "Other realm=r")
        // "realm" after a scheme is a valid token68.
        if line == "Basic realm" || line == "Basic realm=" {
            return #expect(found.count == 3 && found[1].parameters == [:])
        }
        #expect(found == [expected, expected])
    }
}
