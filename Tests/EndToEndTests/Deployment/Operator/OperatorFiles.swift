/// The files of this package for operators.
enum OperatorFiles {
    /// The path of `docker/`.
    static let directory: String = {
        let here = #filePath.split(separator: "/", omittingEmptySubsequences: false)
        // Removes five components: Tests, EndToEndTests, Deployment, Operator and this file.
        return (here.dropLast(5) + ["docker"]).joined(separator: "/")
    }()
}
