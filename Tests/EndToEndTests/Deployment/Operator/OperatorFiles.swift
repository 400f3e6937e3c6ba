/// The files of this package that operators use.
enum OperatorFiles {
    /// `docker/`.
    static let directory: String = {
        let here = #filePath.split(separator: "/", omittingEmptySubsequences: false)
        // The package, Tests, EndToEndTests, Deployment, Operator, this file.
        return (here.dropLast(5) + ["docker"]).joined(separator: "/")
    }()
}
