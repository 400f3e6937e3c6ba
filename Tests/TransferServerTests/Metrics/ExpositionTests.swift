import Testing
import UploadStorage

@testable import TransferServer

@Suite("The text format of Prometheus")
struct ExpositionTests {
    @Test("A family has its help, its type and its samples, in this order")
    func family() {
        var exposition = Exposition()
        exposition.add("a_total", .counter, "All a.", 3)
        exposition.add("b", .gauge, "B.", [.init([("x", "1"), ("y", "2")], 4), .init([], 0.25)])
        #expect(
            exposition.text == """
                # HELP a_total All a.
                # TYPE a_total counter
                a_total 3
                # HELP b B.
                # TYPE b gauge
                b{x="1",y="2"} 4
                b 0.25

                """)
    }

    @Test("Backslash, quote and line feed are escaped in labels; in help texts the quote is not escaped")
    func escaped() {
        var exposition = Exposition()
        exposition.add("a", .gauge, "one\\two\n\"three\"", [.init([("l", "\\ \" \n")], 1)])
        #expect(
            exposition.text == """
                # HELP a one\\\\two\\n"three"
                # TYPE a gauge
                a{l="\\\\ \\" \\n"} 1

                """)
    }

    @Test("A histogram has cumulative buckets, +Inf, sum and count")
    func histogram() {
        var histogram = Histogram(bounds: [0.005, 1])
        for value in [0.001, 0.5, 2] { histogram.observe(value) }
        var exposition = Exposition()
        exposition.add(histogram: "h_seconds", "H.", [([("of", "x")], histogram)])
        #expect(
            exposition.text == """
                # HELP h_seconds H.
                # TYPE h_seconds histogram
                h_seconds_bucket{of="x",le="0.005"} 1
                h_seconds_bucket{of="x",le="1"} 2
                h_seconds_bucket{of="x",le="+Inf"} 3
                h_seconds_sum{of="x"} 2.501
                h_seconds_count{of="x"} 3

                """)
    }

    @Test(
        "Numbers are written so that Prometheus reads the same value",
        arguments: [
            (0.0, "0"), (2, "2"), (1_795_267_712.59, "1795267712.59"), (1e-05, "1e-05"), (Double.infinity, "+Inf"),
            (-Double.infinity, "-Inf"), (Double.nan, "NaN"),
        ])
    func numbers(value: Double, text: String) {
        var exposition = Exposition()
        exposition.add("a", .gauge, "A.", [.init([], value)])
        #expect(exposition.text.hasSuffix("\na \(text)\n"))
    }
}
