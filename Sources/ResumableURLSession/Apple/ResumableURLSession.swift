import Foundation

/// Foundation's own session does all of this on Apple's platforms.
public typealias ResumableURLSession = URLSession

/// There the ordinary delegate of tasks receives interim responses.
public typealias URLSessionInformationalResponseDelegate = URLSessionTaskDelegate
