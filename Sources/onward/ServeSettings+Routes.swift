import CommandLineInterface
import Foundation
import Gateway

/// The options for applications behind the server.
extension ServeSettings {
    static func route(_ text: String) throws(OptionError) -> Route {
        do throws(RouteError) {
            return try Route(parsing: text) { try? .seconds(Quantity.seconds($0)) }
        } catch { throw OptionError(error.description) }
    }

    /// Reads the routes of a file. Reports all mistakes at once, each with its line.
    static func routes(in path: String) throws(OptionError) -> [Route] {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw OptionError("\(path) cannot be read")
        }
        var routes: [Route] = []
        var mistakes: [String] = []
        let lines = String(decoding: data, as: UTF8.self).split(
            omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        for (number, line) in lines.enumerated() {
            let text = line.prefix { $0 != "#" }.trimmingCharacters(in: .whitespaces)
            if text.isEmpty { continue }
            do throws(OptionError) { routes.append(try route(text)) } catch {
                mistakes.append("\(path), line \(number + 1): \(error.message)")
            }
        }
        guard mistakes.isEmpty else { throw OptionError(mistakes.joined(separator: "\n")) }
        return routes
    }

    func checkRoutes() throws(OptionError) {
        var paths: Set<String> = []
        for route in routes {
            if let taken = OwnPaths(server.ownPrefix).path(of: route.segments) {
                throw OptionError(
                    "the route \(route.path) is \(taken) or below it, which this server uses itself; --own-prefix moves"
                        + " the server's own paths")
            }
            if !paths.insert(route.path).inserted { throw OptionError("the route \(route.path) is given twice") }
            if route.access == .authorized && tokenFile == nil && authorizationURL == nil {
                throw OptionError(
                    "the route \(route.path) has no access rule: require tokens with --token-file, let an application decide"
                        + " with --auth-url, or add access=open if the application authorizes its clients itself")
            }
        }
        if authorizationURL != nil && server.allowsAnonymous {
            throw OptionError("--auth-url authorizes clients and --allow-anonymous does not; choose one")
        }
    }
}
