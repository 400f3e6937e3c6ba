import ConformanceKit
import Foundation
import SystemCalls
import TestSupport
import Testing

@Suite(
    "The events of several servers", .blocking,
    .enabled(if: Cluster.isPossible, "\(Cluster.requirement)"))
struct ClusterEventTests {
    @Test(
        "events have the times of the database, although the clock of the server that delivers them differs by minutes",
        .enabled(if: PreloadedLibrary.compiler != nil, "needs a C compiler"))
    func clocks() throws {
        for difference in PostgreSQLCluster.isRequired ? [-400, 400] : [-400] {
            let clock = try ShiftedClock()
            defer { withExtendedLifetime(clock) {} }
            try clock.shift(by: difference)
            let environment = clock.environment
            let endpoint = try EventEndpoint()
            let start = Date()
            try withCluster(1, endpoint.options(), Cluster.Features(environment: { _ in environment })) { cluster in
                try cluster.nodes[0].store(["/files/a", "/files/b"])
                let events = endpoint.awaitAccepted(2, within: .seconds(60))
                let format = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
                for event in events {
                    let time = try Date(event.time, strategy: format)
                    #expect(time > start - 60 && time < Date() + 60, "\(event.time)")
                }
                let metrics = try cluster.nodes[0].metrics()
                #expect(metrics["onward_events_oldest_age_seconds"] < 60)
            }
            // The endpoint compares the time in each signature with its own clock.
            #expect(endpoint.mistakes.isEmpty, "\(endpoint.mistakes.prefix(2))")
        }
    }
}
