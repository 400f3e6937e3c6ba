import ConformanceKit
import Foundation
import SystemCalls
import TestSupport
import Testing

@Suite(
    "onward events and onward outcomes beside several servers", .blocking,
    .enabled(if: Cluster.isPossible, "\(Cluster.requirement)"))
struct ClusterCommandTests {
    private static let waiting = "onward_events{state=\"waiting\"}"
    private static let setAside = "onward_events{state=\"set-aside\"}"

    @Test("events that are set aside are listed, retried by a running server, and dropped")
    func events() throws {
        let endpoint = try EventEndpoint { event in
            event.data.target.hasPrefix("/files/bad") ? .status("400 No") : .status("200 OK")
        }
        try withCluster(2, endpoint.options(["retry=1s"])) { cluster in
            func events(_ arguments: String...) throws -> OnwardRun {
                try OnwardRun(["events"] + arguments + cluster.catalog)
            }
            try events("list").expectOutput("")
            try cluster.nodes[0].store(["/files/bad-1"])
            try cluster.nodes[1].store(["/files/bad-2", "/files/good", "/files/bad-3"])
            _ = try cluster.nodes[1].metrics { $0[Self.setAside] == 3 && $0[Self.waiting] == 0 }
            let list = try events("list")
            let lines = list.output.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
            #expect(list.ending == .exited(0) && lines.count == 3, "\(list.output)")
            #expect(
                lines.allSatisfy { $0.count == 7 && $0[2] == "set-aside" && $0[3] == "completed" && $0[5] == "PUT" })
            #expect(Set(lines.map { $0[6] }) == ["/files/bad-1", "/files/bad-2", "/files/bad-3"])
            let objects = try events("list", "--json").output.split(separator: "\n").map {
                try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: String]
            }
            #expect(objects.map { $0?["event"] } == lines.map { $0[0] })

            endpoint.respond { _ in .status("200 OK") }
            let dropped = lines[2]
            try events("drop", dropped[0]).expectOutput("events dropped: 1\n")
            try events("retry", String(lines[0][0].prefix(12))).expectOutput("events retried: 1\n")
            #expect(endpoint.awaitAccepted(2).last?.data.target == lines[0][6])
            try events("retry", "--all").expectOutput("events retried: 1\n")
            #expect(endpoint.awaitAccepted(3).last?.data.target == lines[1][6])
            _ = try cluster.nodes[0].metrics { $0[Self.setAside] == 0 && $0[Self.waiting] == 0 }
            try events("list").expectOutput("")
            try events("retry", "0123456789abcdef").expect(66, "no event '0123456789abcdef'")
            #expect(endpoint.accepted.repeated.isEmpty)
            try OnwardRun(["events", "list", "--root", "x"] + cluster.catalog).expect(64, "cannot be combined")
            cluster.database.kill()
            try events("list").expect(75, "cannot be reached", "refused")
            try cluster.database.start()
        }
    }

    @Test("requests with an unknown outcome are listed, sent again with the same content, and dropped")
    func outcomes() throws {
        let hold = Hold()
        let count = Counter()
        let origin = try ScriptedServer.origin { request, connection in
            let number = count.next()
            if number <= 3 {
                try connection.discardContent()
                return connection.close()
            }
            hold.wait()
            try GatewayUploadFixture.accept(request, connection)
        }
        let small = GatewayUploadFixture.content
        let large = Payload.bytes(12_000_000)
        try withCluster(2, ["--route", "/app=\(origin.url),access=open"]) { cluster in
            func outcomes(_ arguments: String...) throws -> OnwardRun { try cluster.run(["outcomes"] + arguments) }
            try outcomes("list").expectOutput("")
            var uploads: [String] = []
            for (index, content) in [small, large, [1]].enumerated() {
                var request = Request.creation(
                    .v8, "POST", GatewayUploadFixture.target, complete: true, .bytes(content))
                request.fields += GatewayUploadFixture.fields
                GatewayUploadFixture.expectUnknown(try cluster.nodes[index % 2].exchange(request))
                uploads.append(try #require(origin.requests.last?.fields["Onward-Upload"]))
            }
            let listed = try outcomes("list")
            #expect(listed.ending == .exited(0), "\(listed.output)")
            let lines = listed.output.split(separator: "\n")
            #expect(lines.count == 3, "\(listed.output)")
            for (upload, length) in zip(uploads, [small.count, large.count, 1]) {
                let line = lines.first { $0.hasPrefix(upload + " ") } ?? ""
                #expect(
                    line.contains(" POST \(GatewayUploadFixture.target) length=\(length) principal=anonymous"),
                    "\(line)")
            }

            // While one process sends a request, another one can neither send nor drop it.
            let first = try ChildProcess(
                ExecutableLocation.onward(), ["outcomes", "resend", uploads[1]] + cluster.nodes[0].storage,
                environment: cluster.storage.environment)
            #expect(origin.awaitRequests(4))
            for command in ["resend", "drop"] { try outcomes(command, uploads[1]).expect(75, "sending") }
            hold.release()
            #expect(try first.awaitEnding() == .exited(0), "\(first.errorOutput)")
            let sent = try #require(origin.requests.last)
            #expect(sent.content == large && sent.isComplete)
            #expect(sent.fields["Onward-Upload"] == uploads[1] && sent.method == "POST", "\(sent.text)")

            try outcomes("resend", String(uploads[0].prefix(8))).expectOutput(
                "the application responded with status 201; the request is removed\n\(GatewayUploadFixture.answer)\n")
            #expect(origin.requests.last?.content == small)
            let dropped = try outcomes("drop", uploads[2])
            #expect(dropped.ending == .exited(0) && dropped.output.contains(uploads[2]), "\(dropped.output)")
            try outcomes("list").expectOutput("")
            try outcomes("resend", uploads[0]).expect(66, "no request", uploads[0])
            #expect(origin.requests.count == 5)
            // Nothing of the three requests is left behind.
            #expect(try cluster.database.query("SELECT count(*) FROM onward.piece") == ["0"])
            #expect(
                try cluster.database.query("SELECT count(*) FROM onward.collection WHERE task LIKE 'resend %'") == ["0"]
            )
            try cluster.run(["check"]).expectOutput("checked uploads: 3, unfinished: 0; checked files: 0; no damage\n")
        }
    }
}
