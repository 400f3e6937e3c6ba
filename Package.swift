// swift-tools-version: 6.2
import PackageDescription

// `make fuzz` builds with this set, in a separate scratch path: see Fuzzing/run.
let isFuzzing = Context.environment["ONWARD_FUZZING"] == "1"

let strict: [SwiftSetting] = [.treatAllWarnings(as: .error)]

// On Apple's platforms Foundation has everything: there the library is only a typealias.
#if os(Linux)
    let sessionTarget = Target.target(
        name: "ResumableURLSession",
        dependencies: ["ResumableTransfer", "HTTPTransport", "ResumableUpload", "HTTPSemantics", "SystemCalls"],
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
            name: "ResumableTransfer",
            targets: ["ResumableTransfer", "HTTPTransport", "ResumableUpload", "HTTPSemantics"]),
        .library(name: "Gateway", targets: ["Gateway", "TransferServer", "HTTPTransport", "HTTPSemantics"]),
        .library(name: "ResumableURLSession", targets: ["ResumableURLSession"]),
        .executable(name: "onward", targets: ["onward"]),
        .executable(name: "onward-conformance", targets: ["onward-conformance"]),
    ],
    targets: [
        // System libraries. One target imports each.
        .systemLibrary(
            name: "CMicroHTTPD", pkgConfig: "libmicrohttpd", providers: [.apt(["libmicrohttpd-dev"])]),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CNettle", pkgConfig: "nettle", providers: [.apt(["nettle-dev"])]),
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CGnuTLS", pkgConfig: "gnutls", providers: [.apt(["libgnutls28-dev"])]),
        .systemLibrary(name: "CPostgreSQL", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
        .systemLibrary(name: "CLinux"),
        // The functions with which libmicrohttpd receives: see AcceptedConnection.swift.
        .target(name: "CReceiveFilter"),
        .target(name: "SystemCalls", dependencies: ["CLinux"], swiftSettings: strict),
        .target(name: "TLS", dependencies: ["SystemCalls", "CGnuTLS"], swiftSettings: strict),
        .target(name: "Digests", dependencies: ["CNettle"], swiftSettings: strict),
        .target(name: "PostgreSQL", dependencies: ["SystemCalls", "CPostgreSQL"], swiftSettings: strict),

        // For both programs: options, help, manual pages and completions from one table.
        .target(name: "CommandLineInterface", swiftSettings: strict),

        .target(name: "StructuredFields", swiftSettings: strict),
        // The module and the page for browsers. SwiftPM generates the code that contains these files.
        .target(
            name: "BrowserAssets",
            resources: [
                "onward.js", "onward.d.ts", "page.html", "page.css", "page.js", "page-elements.js", "page-session.js",
                "page-folder.js", "page-viewer.js", "page-usage.js", "page-sources.js", "page-uploads.js",
                "page-upload-rows.js",
                "texts.js",
            ].map { .embedInCode($0) },
            swiftSettings: strict),
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
                "TLS", "BrowserAssets", "CMicroHTTPD", "CReceiveFilter",
            ],
            swiftSettings: strict),
        // Requests to servers, for the client and the gateway.
        .target(
            name: "HTTPTransport", dependencies: ["HTTPSemantics", "SystemCalls", "CCurl"], swiftSettings: strict),
        .target(
            name: "ObjectStorage", dependencies: ["HTTPTransport", "HTTPSemantics", "Digests", "SystemCalls"],
            swiftSettings: strict),
        .target(
            name: "ClusterStorage",
            dependencies: [
                "UploadStorage", "ResumableUpload", "HTTPSemantics", "PostgreSQL", "ObjectStorage", "SystemCalls",
            ],
            swiftSettings: strict),
        .target(
            name: "ResumableTransfer",
            dependencies: ["HTTPTransport", "ResumableUpload", "HTTPSemantics", "SystemCalls", "Digests"],
            swiftSettings: strict),
        .target(
            name: "Gateway",
            dependencies: [
                "TransferServer", "UploadStorage", "ResumableUpload", "HTTPTransport", "HTTPSemantics", "SystemCalls",
                "Digests",
            ],
            swiftSettings: strict),
        sessionTarget,
        .executableTarget(
            name: "onward",
            dependencies: [
                "Gateway", "ClusterStorage", "PostgreSQL", "ObjectStorage", "TransferServer", "UploadStorage",
                "ResumableTransfer", "ResumableUpload", "HTTPSemantics", "Digests", "SystemCalls", "TLS",
                "CommandLineInterface",
            ],
            swiftSettings: strict),

        // The conformance harness. It does not depend on the server and the client that it tests.
        .target(
            name: "ConformanceKit", dependencies: ["HTTPSemantics", "StructuredFields", "SystemCalls", "TLS"],
            path: "conformance/ConformanceKit", swiftSettings: strict),
        .executableTarget(
            name: "onward-conformance", dependencies: ["ConformanceKit", "SystemCalls", "TLS", "CommandLineInterface"],
            path: "conformance/onward-conformance", swiftSettings: strict),

        // What several targets of tests use.
        .target(
            name: "TestSupport", dependencies: ["SystemCalls"], path: "Tests/TestSupport", swiftSettings: strict),
        // Not a part of TestSupport, because programs without the testing library use that.
        .target(
            name: "HTTPTestSupport",
            dependencies: [
                "ConformanceKit", "HTTPTransport", "HTTPSemantics", "Digests", "SystemCalls", "TestSupport",
            ],
            path: "Tests/HTTPTestSupport", swiftSettings: strict),
        .testTarget(
            name: "StructuredFieldsTests", dependencies: ["StructuredFields", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "CommandLineInterfaceTests", dependencies: ["CommandLineInterface", "SystemCalls", "TestSupport"],
            swiftSettings: strict),
        .testTarget(
            name: "HTTPSemanticsTests", dependencies: ["HTTPSemantics", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "DigestsTests", dependencies: ["Digests", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "SystemCallsTests", dependencies: ["SystemCalls", "TestSupport"], swiftSettings: strict),
        .testTarget(name: "TLSTests", dependencies: ["TLS"], swiftSettings: strict),
        .testTarget(
            name: "PostgreSQLTests", dependencies: ["PostgreSQL", "SystemCalls", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "ResumableUploadTests", dependencies: ["ResumableUpload", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "UploadStorageTests",
            dependencies: [
                "UploadStorage", "ClusterStorage", "PostgreSQL", "ObjectStorage", "SystemCalls", "CSQLite", "Digests",
                "PowerLoss", "TestSupport",
            ],
            swiftSettings: strict),
        // A separate program, because it replaces functions of the C library (see SystemCalls+Interposition.swift).
        .executableTarget(
            name: "PowerLoss",
            dependencies: [
                "UploadStorage", "ResumableUpload", "HTTPSemantics", "SystemCalls", "CLinux", "TestSupport",
            ],
            path: "Tests/PowerLoss", swiftSettings: strict + [.unsafeFlags(["-O"])],
            linkerSettings: [.unsafeFlags(["-Xlinker", "--export-dynamic"])]),
        // A separate program, because tests kill it.
        .executableTarget(
            name: "TransferRecipes", dependencies: ["ResumableTransfer", "SystemCalls"], path: "Tests/TransferRecipes",
            swiftSettings: strict),
        // A separate program, so that it can run on systems without a toolchain and with another libmicrohttpd.
        .executableTarget(
            name: "FramingDifferential",
            dependencies: ["TransferServer", "HTTPSemantics", "SystemCalls", "TestSupport"],
            path: "Tests/FramingDifferential", swiftSettings: strict),
        .testTarget(
            name: "TransferServerTests",
            dependencies: [
                "TransferServer", "UploadStorage", "ResumableUpload", "FramingDifferential", "HTTPSemantics", "Digests",
                "BrowserAssets", "SystemCalls", "ConformanceKit", "HTTPTestSupport", "TestSupport",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "HTTPTransportTests",
            dependencies: [
                "HTTPTransport", "HTTPSemantics", "SystemCalls", "ConformanceKit", "HTTPTestSupport", "TestSupport",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "ObjectStorageTests",
            dependencies: [
                "ObjectStorage", "HTTPTransport", "HTTPSemantics", "Digests", "SystemCalls", "HTTPTestSupport",
                "TestSupport",
            ],
            exclude: ["seaweedfs.txt"],
            swiftSettings: strict),
        .testTarget(
            name: "ClusterStorageTests",
            dependencies: [
                "ClusterStorage", "PostgreSQL", "ObjectStorage", "UploadStorage", "ResumableUpload", "HTTPSemantics",
                "Digests", "SystemCalls", "TestSupport",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "GatewayTests",
            dependencies: [
                "Gateway", "TransferServer", "ResumableUpload", "HTTPSemantics", "SystemCalls", "TestSupport",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "ResumableTransferTests",
            dependencies: ["ResumableTransfer", "HTTPTransport", "SystemCalls", "TransferRecipes", "TestSupport"],
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
                "TLS", "HTTPTestSupport", "TestSupport",
            ],
            path: "conformance/Tests/ConformanceKitTests", swiftSettings: strict),
        // Compiled in the Swift 5 mode, like much code for Apple's platforms. There the requirement of
        // FoundationNetworking that delegates are Sendable is only a warning.
        .testTarget(
            name: "SessionListingTests", dependencies: ["ResumableURLSession"],
            swiftSettings: [.swiftLanguageMode(.v5), .unsafeFlags(["-suppress-warnings"])]),
        .testTarget(
            name: "EndToEndTests",
            dependencies: [
                "onward", "TransferRecipes", "ResumableURLSession", "ResumableTransfer", "Gateway", "HTTPTransport",
                "TransferServer", "UploadStorage", "ResumableUpload", "HTTPSemantics", "SystemCalls", "Digests", "TLS",
                "ConformanceKit", "HTTPTestSupport", "TestSupport",
            ],
            exclude: ["Server/Compatibility/version-0.1.0.tar.gz"],
            swiftSettings: strict),
    ],
    swiftLanguageModes: [.v6]
)

// Fuzz targets use internals of these modules, so they are compiled like tests, with @testable imports.
let fuzzed: [Target.Dependency] = [
    "onward", "TransferServer", "ResumableTransfer", "HTTPTransport", "ObjectStorage", "UploadStorage",
    "ResumableUpload",
    "HTTPSemantics",
    "StructuredFields", "Digests", "SystemCalls", "TestSupport",
]
if isFuzzing {
    // One archive with all code, which the script links with libFuzzer. libFuzzer has `main`, so the command becomes a library
    // and its `main` gets another name.
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
