import Foundation

/// On Apple's platforms the session of Foundation can pause and resume uploads and downloads.
public typealias ResumableURLSession = URLSession

/// On Apple's platforms the delegate of a task receives interim responses.
public typealias URLSessionInformationalResponseDelegate = URLSessionTaskDelegate
