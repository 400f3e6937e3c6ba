import SystemCalls
import TestSupport
import Testing

@testable import ObjectStorage

@Suite("Credentials of object storages")
struct ObjectCredentialsTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    @Test("The environment precedes the file")
    func environment() throws {
        let path = try directory.file("credentials", Array("[default]\n".utf8))
        let keys = try ObjectCredentials(environment: [
            "AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "S", "AWS_SESSION_TOKEN": "T",
            "AWS_SHARED_CREDENTIALS_FILE": path,
        ]).keys()
        #expect(keys == AccessKeys(identifier: "A", secret: "S", sessionToken: "T"))
    }

    @Test("The profile of the file is used, with comments and spaces ignored")
    func profile() throws {
        let text = """
            # comment
            [default]
            aws_access_key_id = OTHER
            aws_secret_access_key = OTHER
            ; comment
            [ team ]
              AWS_Access_Key_ID=A
            aws_secret_access_key =  S=/+\u{20}
            region = eu-west-1\r
            """
        let path = try directory.file("credentials", Array(text.utf8))
        let environment = ["AWS_SHARED_CREDENTIALS_FILE": path, "AWS_PROFILE": "team"]
        #expect(try ObjectCredentials(environment: environment).keys() == AccessKeys(identifier: "A", secret: "S=/+"))
    }

    @Test("Without another file the credentials are in the home directory, read again after a change")
    func change() throws {
        try FileDescriptor.makeDirectories(FilePath(directory.path + "/.aws"))
        func write(_ text: String) throws { _ = try directory.file(".aws/credentials", Array(text.utf8)) }
        try write("[default]\naws_access_key_id=A\naws_secret_access_key=S\n")
        let credentials = ObjectCredentials(environment: ["HOME": directory.path])
        #expect(try credentials.keys().identifier == "A")
        try write("[default]\naws_access_key_id=CHANGED\naws_secret_access_key=S\n")
        #expect(try credentials.keys().identifier == "CHANGED")
        // A file that is being written does not stop a server.
        try write("[default]\naws_access_key_id=B\n")
        #expect(try credentials.keys().identifier == "CHANGED")
        try FileDescriptor.open(directory.path, [.readOnly, .directory]).unlink(at: FilePath(".aws/credentials"))
        #expect(try credentials.keys().identifier == "CHANGED")
        try write("[default]\naws_access_key_id=C\naws_secret_access_key=S\n")
        #expect(try credentials.keys().identifier == "C")
    }

    @Test(
        "Missing credentials are described",
        arguments: [
            ([:], "HOME"), (["AWS_ACCESS_KEY_ID": "A"], "AWS_SECRET_ACCESS_KEY"),
            (["HOME": "/nonexistent"], "/nonexistent/.aws/credentials"),
            (["AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_PROFILE": "p"], "profile 'p'"),
        ])
    func missing(_ environment: [String: String], _ hint: String) {
        #expect {
            try ObjectCredentials(environment: environment).keys()
        } throws: { error in
            "\(error)".contains(hint)
        }
    }

    @Test("No text that is made of keys, their source or a client contains the secret or the token")
    func secrecy() throws {
        let keys = AccessKeys(identifier: "A", secret: "SECRET", sessionToken: "TOKEN")
        let text = "[default]\naws_access_key_id=A\naws_secret_access_key=SECRET\naws_session_token=TOKEN\n"
        let path = try directory.file("credentials", Array(text.utf8))
        let sources = [
            ObjectCredentials(environment: ["AWS_SHARED_CREDENTIALS_FILE": path]),
            ObjectCredentials(environment: [
                "AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "SECRET", "AWS_SESSION_TOKEN": "TOKEN",
            ]),
        ]
        for source in sources { #expect(try source.keys() == keys) }
        let clients = try sources.map { S3Client(try ObjectStorageURI(parsing: "s3://bucket?region=r"), $0) }
        var texts = ["\(keys)", String(reflecting: keys), "\([keys])", "\(Optional(keys) as Any)"]
        for value in [keys, sources, clients] as [Any] {
            var dumped = ""
            dump(value, to: &dumped)
            texts += [dumped, "\(value)", String(reflecting: value)]
        }
        #expect(texts.contains { $0.contains("identifier: \"A\"") })
        for text in texts { #expect(!text.contains("SECRET") && !text.contains("TOKEN")) }
    }
}
