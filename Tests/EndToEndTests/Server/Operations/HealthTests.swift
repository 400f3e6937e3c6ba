import ConformanceKit
import FoundationEssentials
import TestSupport
import Testing

/// `/healthz` and `/readyz`.
@Suite("Health", .blocking)
struct HealthTests {
    @Test("/healthz and /readyz answer GET and HEAD of any client, and no other method")
    func answers() throws {
        try withServer { server in
            let connection = try server.connect()
            for path in ["/healthz", "/readyz"] {
                let response = try connection.exchange(.get(path))
                #expect(response.status == 200)
                #expect(response.value("Cache-Control") == "no-store")
                #expect(response.text == (path == "/healthz" ? "ok\n" : "ready\n"))
                #expect(try connection.exchange(Request("HEAD", path)).status == 200)
                // A probe may use any name for the machine.
                let probe = Request("GET", path, [("Host", "10.0.0.7:8080"), ("X-Forwarded-For", "10.0.0.1")])
                #expect(try connection.exchange(probe).status == 200)
                let post = try connection.exchange(Request("POST", path, [], .bytes([])))
                #expect(post.status == 405)
                #expect(Set(post.list("Allow")) == ["get", "head"])
            }
            #expect(try connection.exchange(.get("/healthz/x")).status == 404)
        }
    }

    @Test("LIM-17: /healthz, /readyz and unknown paths do not announce uploads")
    func discovery() throws {
        try withServer { server in
            for path in ["/healthz", "/readyz", "/nowhere", "/"] {
                let response = try server.exchange(Request("OPTIONS", path))
                #expect(!response.fields.contains("Upload-Limit"), "\(path)")
                #expect(!response.fields.contains("Accept-Patch"), "\(path)")
            }
        }
    }

    @Test("/readyz responds with 503 and a reason while the store cannot write, and with 200 afterwards")
    func unready() throws {
        try withServer { server in
            let uploads = server.root + "/uploads"
            try FileManager.default.removeItem(atPath: uploads)
            let unready: Response? = try pollUntil(within: .seconds(60)) {
                let response = try server.exchange(.get("/readyz"))
                return response.status == 503 ? response : nil
            }
            let response = try #require(unready)
            #expect(response.problem?.code == "not-ready")
            #expect(response.problem?.reasons == ["bytes-cannot-be-written"])
            #expect(response.value("Cache-Control") == "no-store")
            #expect(!response.text.contains(server.root), "the response reveals a path")
            #expect(response.fields.contains("Retry-After"))
            #expect(try server.exchange(.get("/healthz")).status == 200)
            #expect(try server.exchange(Request("PUT", "/files/f.bin", [], .bytes([1]))).status >= 500)
            try server.restart()
            #expect(try server.exchange(.get("/readyz")).status == 200)
        }
    }

    @Test("If there is too little space, creations get 507, /readyz gets 503, and downloads continue")
    func space() throws {
        try withServer("--min-free", "900T") { server in
            try server.place([1, 2, 3], as: "f.bin")
            let response = try server.exchange(Request("PUT", "/files/g.bin", [], .bytes([1])))
            #expect(response.status == 507)
            #expect(response.problem?.code == "insufficient-space")
            let creation = try server.exchange(.creation(complete: false, .bytes([1])))
            #expect(creation.status == 507)
            #expect(creation.complete == false)
            #expect(try server.download("f.bin").content == [1, 2, 3])
            let unready = try server.exchange(.get("/readyz"))
            #expect(unready.status == 503)
            #expect(unready.problem?.reasons == ["insufficient-space"])
            #expect(try server.exchange(.get("/healthz")).status == 200)
        }
    }
}
