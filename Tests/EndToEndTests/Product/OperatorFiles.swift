/// The files of this package that operators use.
enum OperatorFiles {
    /// `docker/`.
    static let directory: String = {
        let here = #filePath.split(separator: "/", omittingEmptySubsequences: false)
        // The package, Tests, EndToEndTests, Product, this file.
        return (here.dropLast(4) + ["docker"]).joined(separator: "/")
    }()
}
