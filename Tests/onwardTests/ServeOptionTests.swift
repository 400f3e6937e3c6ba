import CommandLineInterface
import Testing

@testable import onward

/// The settings of `serve`. TransferServerTests tests their effects on the protocol without the program.
@Suite("Options of serve")
struct ServeOptionTests {
    private static func settings(
        _ options: [CommandArgument], _ environment: [String: String] = [:]
    ) throws -> ServeSettings {
        var settings = ServeSettings()
        try OptionParser(options: ServeSettings.options).parse(options, environment: environment, into: &settings)
        return settings
    }

    @Test("each option for responses sets its setting, which has another value without the option")
    func effects() throws {
        let cases: [(options: [CommandArgument], isSet: (ServeSettings) -> Bool)] = [
            (["--max-size", "1K"], { $0.server.limits.maxSize == 1000 }),
            (["--min-size", "1000"], { $0.server.limits.minSize == 1000 }),
            (["--max-append-size", "2M"], { $0.server.limits.maxAppendSize == 2_000_000 }),
            (["--min-append-size", "5"], { $0.server.limits.minAppendSize == 5 }),
            (["--announce-without-version"], { $0.server.isAnnouncedWithoutVersion }),
            (["--require-length"], { $0.server.isLengthRequired }),
            (["--reject-form-data"], { $0.shouldRejectFormData }),
            (["--inline"], { $0.shouldShowActiveTypes }),
            (["--no-page"], { !$0.server.hasPage }),
            (["--allow-anonymous"], { $0.server.isAnonymousAllowed }),
            (["--public-read"], { $0.isPublicReadingAllowed }),
            (["--interim", "off"], { !$0.server.shouldSendInterimResponses }),
            (
                ["--cors-origin", "https://a.example", "--cors-origin", "*"],
                { $0.server.corsOrigins == ["https://a.example", "*"] }
            ),
            (
                ["--cache-control", "Max-Age=60,must-revalidate"],
                { $0.server.cacheControl.serialized == "max-age=60, must-revalidate" }
            ),
        ]
        let defaults = try Self.settings([])
        for (options, isSet) in cases {
            #expect(isSet(try Self.settings(options)), "\(options)")
            #expect(!isSet(defaults), "\(options)")
        }
        #expect(
            try Self.settings([], ["ONWARD_CACHE_CONTROL": "max-age=5"]).server.cacheControl.serialized == "max-age=5")
    }

    @Test("a ca-file of --blobs that is no readable file with certificates is refused")
    func unusableAuthorities() {
        for path in ["/nonexistent/ca.pem", "/dev/null"] {
            let error = #expect(throws: OptionError.self) {
                try Self.settings([CommandArgument("--blobs"), CommandArgument("s3://bucket?region=r&ca-file=\(path)")])
            }
            #expect(error?.message.contains("--blobs: \(path) is not") == true)
        }
    }
}
