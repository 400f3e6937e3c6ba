import FoundationEssentials
import TestSupport
import Testing

/// The files for containers: those of Docker Compose, and the manifests for Kubernetes. `make test-scale` and
/// `make test-deployment` run them.
@Suite("Files for containers", .blocking)
struct ContainerFileTests {
    @Test(
        "Every variable of the server is an option",
        arguments: [
            ("compose.yml", 2), ("compose.gateway.yml", 3), ("compose.scale.yml", 4), ("kubernetes/deployment.yaml", 5),
        ])
    func variables(file: String, count: Int) throws {
        let text = try String(contentsOfFile: OperatorFiles.directory + "/" + file, encoding: .utf8)
        // ONWARD_NAME: VALUE, or name: ONWARD_NAME, value: VALUE. The proxy has variables of its own.
        let names = Set(
            text.split(separator: "\n").compactMap { line -> Substring? in
                guard let start = line.firstRange(of: "ONWARD_")?.lowerBound, !line[..<start].contains("$") else {
                    return nil
                }
                let name = line[start...].prefix { $0 == "_" || $0.isUppercase }
                return [":", ","].contains(line[name.endIndex...].prefix(1)) && name != "ONWARD_SITE" ? name : nil
            })
        #expect(names.count == count, "\(names)")
        let help = try OnwardRun(["serve", "--help"]).output
        for name in names {
            let option = "--" + name.dropFirst("ONWARD_".count).lowercased().replacing("_", with: "-")
            #expect(help.contains(" \(option) "), "\(name)")
        }
    }
}
