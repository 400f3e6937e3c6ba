// swift-tools-version: 6.2
import PackageDescription

// A package as a user of the server library writes it, without linker flags. See scripts/test-embedding.
let package = Package(
    name: "Embedding",
    products: [.library(name: "Plugin", type: .dynamic, targets: ["Plugin"])],
    dependencies: [.package(name: "onward", path: "../..")],
    targets: [
        .executableTarget(name: "Embedding", dependencies: [.product(name: "TransferServer", package: "onward")]),
        // In a library that is loaded with dlopen, libmicrohttpd does not call the receive filter, so the server has to
        // refuse to start.
        .target(name: "Plugin", dependencies: [.product(name: "TransferServer", package: "onward")]),
        .executableTarget(name: "PluginHost"),
    ],
    swiftLanguageModes: [.v6]
)
