import Testing

@Suite("Command: health", .blocking, .timeLimit(.minutes(15)))
struct HealthCommandTests {
    @Test("0 where the server is ready, 69 where it answers something else, 75 where nobody is")
    func statuses() throws {
        let home = try CommandHome()
        try withServer { server in
            let url = server.url("/readyz")
            let ready = try home.run("health", url)
            try ready.expect(0)
            #expect(ready.errors.contains("200") && ready.output == "")
            #expect(try home.run("health", "--quiet", url).errors == "")
            let refused = try home.run("health", server.url("/files/nothing"))
            try refused.expect(69)
            #expect(refused.errors.contains("404"))
            try home.run("health", url, url).expect(64)
            try home.run("health", "nonsense").expect(64)
        }
        try home.run("health", "http://127.0.0.1:1/readyz").expect(75)
    }
}
