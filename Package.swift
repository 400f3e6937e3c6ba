// swift-tools-version: 6.2
import PackageDescription

// `make fuzz` builds with this set, in a scratch path of its own: see Fuzzing/run.
let isFuzzing = Context.environment["ONWARD_FUZZING"] == "1"

let strict: [SwiftSetting] = [.treatAllWarnings(as: .error)]

// Apple's platforms have all of it in Foundation: there the library is one name for that.
#if os(Linux)
    let sessionTarget = Target.target(
        name: "ResumableURLSession",
        dependencies: ["ResumableTransfer", "ResumableUpload", "HTTPSemantics", "SystemCalls"],
        exclude: ["Apple"],
        swiftSettings: strict)
#else
    let sessionTarget = Target.target(name: "ResumableURLSession", sources: ["Apple"], swiftSettings: strict)
#endif

let package = Package(
    name: "onward",
    products: [
        .library(
            name: "TransferServer",
            targets: ["TransferServer", "UploadStorage", "ResumableUpload", "HTTPSemantics", "TLS"]),
        .library(
            name: "ResumableTransfer", targets: ["ResumableTransfer", "ResumableUpload", "HTTPSemantics"]),
        .library(name: "ResumableURLSession", targets: ["ResumableURLSession"]),
        .executable(name: "onward", targets: ["onward"]),
        .executable(name: "onward-conformance", targets: ["onward-conformance"]),
    ],
    targets: [
        // Ground: one system library, one importer.
        .systemLibrary(
            name: "CMicroHTTPD", pkgConfig: "libmicrohttpd", providers: [.apt(["libmicrohttpd-dev"])]),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CNettle", pkgConfig: "nettle", providers: [.apt(["nettle-dev"])]),
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CGnuTLS", pkgConfig: "gnutls", providers: [.apt(["libgnutls28-dev"])]),
        .systemLibrary(name: "CLinux"),
        // What libmicrohttpd calls to receive: see AcceptedConnection.swift.
        .target(name: "CReceiveFilter"),
        .target(name: "SystemCalls", dependencies: ["CLinux"], swiftSettings: strict),
        .target(name: "TLS", dependencies: ["SystemCalls", "CGnuTLS"], swiftSettings: strict),
        .target(name: "Digests", dependencies: ["CNettle"], swiftSettings: strict),

        // Of both programs: options, help, manual and completions from one table.
        .target(name: "CommandLineInterface", swiftSettings: strict),

        .target(name: "StructuredFields", swiftSettings: strict),
        .target(name: "HTTPSemantics", dependencies: ["StructuredFields"], swiftSettings: strict),
        .target(name: "ResumableUpload", dependencies: ["HTTPSemantics", "StructuredFields"], swiftSettings: strict),
        .target(
            name: "UploadStorage",
            dependencies: ["ResumableUpload", "HTTPSemantics", "SystemCalls", "Digests", "CSQLite"],
            swiftSettings: strict),
        .target(
            name: "TransferServer",
            dependencies: [
                "UploadStorage", "ResumableUpload", "HTTPSemantics", "StructuredFields", "SystemCalls", "Digests",
                "TLS", "CMicroHTTPD", "CReceiveFilter",
            ],
            swiftSettings: strict),
        .target(
            name: "ResumableTransfer",
            dependencies: ["ResumableUpload", "HTTPSemantics", "SystemCalls", "Digests", "CCurl"],
            swiftSettings: strict),
        sessionTarget,
        .executableTarget(
            name: "onward",
            dependencies: [
                "TransferServer", "UploadStorage", "ResumableTransfer", "ResumableUpload", "HTTPSemantics", "Digests",
                "SystemCalls", "TLS", "CommandLineInterface",
            ],
            swiftSettings: strict),

        // The oracle: nothing of the server and the client that it judges.
        .target(
            name: "ConformanceKit", dependencies: ["HTTPSemantics", "StructuredFields", "SystemCalls", "TLS"],
            path: "conformance/ConformanceKit", swiftSettings: strict),
        .executableTarget(
            name: "onward-conformance", dependencies: ["ConformanceKit", "SystemCalls", "TLS", "CommandLineInterface"],
            path: "conformance/onward-conformance", swiftSettings: strict),

        // What several targets of tests use.
        .target(
            name: "TestSupport", dependencies: ["SystemCalls"], path: "Tests/TestSupport", swiftSettings: strict),
        .testTarget(
            name: "StructuredFieldsTests", dependencies: ["StructuredFields", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "CommandLineInterfaceTests", dependencies: ["CommandLineInterface", "SystemCalls"],
            swiftSettings: strict),
        .testTarget(
            name: "HTTPSemanticsTests", dependencies: ["HTTPSemantics", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "DigestsTests", dependencies: ["Digests", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "SystemCallsTests", dependencies: ["SystemCalls", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "ResumableUploadTests", dependencies: ["ResumableUpload", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "UploadStorageTests",
            dependencies: ["UploadStorage", "SystemCalls", "CSQLite", "Digests", "PowerLoss", "TestSupport"],
            swiftSettings: strict),
        // A program of its own, as it takes the place of the C library's functions (see SystemCalls+Interposition.swift).
        .executableTarget(
            name: "PowerLoss",
            dependencies: ["UploadStorage", "ResumableUpload", "HTTPSemantics", "SystemCalls", "TestSupport"],
            path: "Tests/PowerLoss", swiftSettings: strict + [.unsafeFlags(["-O"])],
            linkerSettings: [.unsafeFlags(["-Xlinker", "--export-dynamic"])]),
        // A program of its own, as it is killed in the middle of its work.
        .executableTarget(
            name: "TransferRecipes", dependencies: ["ResumableTransfer", "SystemCalls"], path: "Tests/TransferRecipes",
            swiftSettings: strict),
        // A program of its own, so that it can run on systems without a toolchain, with another libmicrohttpd.
        .executableTarget(
            name: "FramingDifferential",
            dependencies: ["TransferServer", "HTTPSemantics", "SystemCalls", "TestSupport"],
            path: "Tests/FramingDifferential", swiftSettings: strict),
        .testTarget(
            name: "TransferServerTests",
            dependencies: [
                "TransferServer", "UploadStorage", "ResumableUpload", "FramingDifferential", "HTTPSemantics",
                "SystemCalls", "ConformanceKit", "TestSupport",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "ResumableTransferTests", dependencies: ["ResumableTransfer", "SystemCalls", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "onwardTests",
            dependencies: [
                "onward", "ResumableTransfer", "HTTPSemantics", "SystemCalls", "CommandLineInterface", "TestSupport",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "ResumableURLSessionTests",
            dependencies: ["ResumableURLSession", "ResumableTransfer", "HTTPSemantics", "SystemCalls", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "ConformanceKitTests",
            dependencies: [
                "ConformanceKit", "onward-conformance", "onward", "HTTPSemantics", "StructuredFields", "SystemCalls",
                "TLS", "TestSupport",
            ],
            path: "conformance/Tests/ConformanceKitTests", swiftSettings: strict),
        // As code is that was written for Apple's platforms: in the Swift 5 mode, where it is a warning that
        // FoundationNetworking wants delegates to be Sendable.
        .testTarget(
            name: "SessionListingTests", dependencies: ["ResumableURLSession"],
            swiftSettings: [.swiftLanguageMode(.v5), .unsafeFlags(["-suppress-warnings"])]),
        .testTarget(
            name: "EndToEndTests",
            dependencies: [
                "onward", "TransferRecipes", "ResumableURLSession", "ResumableTransfer", "TransferServer",
                "UploadStorage", "ResumableUpload", "HTTPSemantics", "SystemCalls", "Digests", "TLS", "ConformanceKit",
                "TestSupport",
            ],
            exclude: [
                "Deployment/Browser/journey.html", "Deployment/Browser/stranger.html",
                "Server/Compatibility/version-0.1.0.tar.gz",
            ],
            swiftSettings: strict),
    ],
    swiftLanguageModes: [.v6]
)

// What the fuzz targets reach: internals of all these modules, so they are compiled as a test is, with @testable imports.
let fuzzed: [Target.Dependency] = [
    "onward", "TransferServer", "ResumableTransfer", "UploadStorage", "ResumableUpload", "HTTPSemantics",
    "StructuredFields", "Digests", "SystemCalls", "TestSupport",
]
if isFuzzing {
    // One archive with everything in it, into which the script links libFuzzer, whose `main` it is: so the command's own
    // gets another name, and the command becomes a library.
    let command = package.targets.first { $0.name == "onward" }
    package.targets.removeAll { $0.type == .test || $0.name == "onward" }
    package.products = [.library(name: "OnwardFuzzing", type: .static, targets: ["OnwardFuzzing"])]
    package.targets += [
        .target(
            name: "onward", dependencies: command?.dependencies ?? [],
            swiftSettings: strict + [
                .unsafeFlags(["-Xfrontend", "-entry-point-function-name", "-Xfrontend", "onward_main"])
            ]),
        .target(
            name: "OnwardFuzzing", dependencies: fuzzed, path: "Fuzzing", exclude: ["Tests", "run"],
            sources: ["Targets", "Entry"],
            swiftSettings: strict),
    ]
} else {
    package.targets.append(
        .testTarget(
            name: "FuzzingTests", dependencies: fuzzed, path: "Fuzzing", exclude: ["Entry", "run"],
            sources: ["Targets", "Tests"],
            swiftSettings: strict))
}
