//! What is found where environment and files say something.

use super::*;
use std::fs;

/// What is found where these variables are set, and these files are in the home directory.
fn found(access: &Access, variables: &[(&str, &str)], files: &[(&str, &str)]) -> Result<Found> {
    let home = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = home.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let environment = |name: &str| match name {
        "HOME" => Some(home.path().to_str().unwrap().to_owned()),
        _ => variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()),
    };
    access.find(&environment)
}

fn keys(key: &str, secret: &str) -> Option<(String, String, Option<String>)> {
    Some((key.into(), secret.into(), None))
}

const CREDENTIALS: (&str, &str) = (
    ".aws/credentials",
    "[default]\naws_access_key_id = A\naws_secret_access_key = a/b+c=\n\n[work]\n\
     aws_access_key_id=W\naws_secret_access_key=w\naws_session_token=t\n",
);
const CONFIG: (&str, &str) = (
    ".aws/config",
    "[default]\nregion = eu-central-1\n[profile work]\nendpoint_url = https://s3.example.org\n\
     [profile sso]\nsso_session = x\n[profile served]\nservices = mine\naws_access_key_id=x\n\
     aws_secret_access_key=y\n",
);
const RCLONE: (&str, &str) = (
    ".config/rclone/rclone.conf",
    "[box]\ntype = s3\nprovider = Minio\naccess_key_id = K\nsecret_access_key = s\n\
     endpoint = http://127.0.0.1:9000\n[drive]\ntype = drive\n[env]\ntype = s3\nenv_auth = true\n",
);

#[test]
fn the_files_of_aws_cli_are_understood() {
    let files = [CREDENTIALS, CONFIG];
    let default = found(&Access::default(), &[], &files).unwrap();
    assert_eq!(default.keys, keys("A", "a/b+c="));
    assert_eq!((default.endpoint, default.region.as_deref()), (None, Some("eu-central-1")));
    let work = Access { profile: Some("work".into()), ..Access::default() };
    let environment = [("AWS_ACCESS_KEY_ID", "E"), ("AWS_SECRET_ACCESS_KEY", "e")];
    let asked = found(&work, &environment, &files).unwrap();
    // A profile that is asked for comes before the environment; one of the environment behind it.
    assert_eq!(asked.keys, Some(("W".into(), "w".into(), Some("t".into()))));
    assert_eq!(asked.endpoint.as_deref(), Some("https://s3.example.org"));
    let named = [environment[0], environment[1], ("AWS_PROFILE", "work")];
    assert_eq!(found(&Access::default(), &named, &files).unwrap().keys, keys("E", "e"));
    let endpoint = Access { endpoint: Some("minio.example.org:9000".into()), ..work };
    let endpoint = found(&endpoint, &[], &files).unwrap().endpoint;
    assert_eq!(endpoint.as_deref(), Some("https://minio.example.org:9000"));
}

#[test]
fn the_remotes_of_rclone_are_understood() {
    let remote = |name: &str| Access { remote: Some(name.into()), ..Access::default() };
    let own = found(&remote("box"), &[("AWS_ACCESS_KEY_ID", "E")], &[RCLONE]).unwrap();
    assert_eq!(
        (own.keys, own.endpoint.as_deref()),
        (keys("K", "s"), Some("http://127.0.0.1:9000"))
    );
    let set = [("RCLONE_CONFIG_BOX_ENDPOINT", "http://other"), ("AWS_ENDPOINT_URL", "http://no")];
    let set = found(&remote("box"), &set, &[RCLONE]).unwrap();
    assert_eq!(set.endpoint.as_deref(), Some("http://other"));
    let environment = [("AWS_ACCESS_KEY_ID", "E"), ("AWS_SECRET_ACCESS_KEY", "e")];
    assert_eq!(found(&remote("env"), &environment, &[RCLONE]).unwrap().keys, keys("E", "e"));
}

#[test]
fn what_is_not_understood_is_refused() {
    let of = |profile: Option<&str>, remote: Option<&str>| Access {
        profile: profile.map(str::to_owned),
        remote: remote.map(str::to_owned),
        ..Access::default()
    };
    let files = [CREDENTIALS, CONFIG, RCLONE];
    let cases = [
        (of(Some("none"), None), "no profile none"),
        (of(Some("sso"), None), "by sso_session"),
        (of(Some("served"), None), "under services"),
        (of(None, Some("drive")), "of type drive"),
        (of(None, Some("none")), "no remote none"),
        (of(Some("work"), Some("box")), "exclude each other"),
    ];
    for (access, text) in cases {
        let e = found(&access, &[], &files).unwrap_err();
        assert!(matches!(&e, Error::Invalid(what) if what.contains(text)), "{text}: {e}");
    }
    let encrypted = (".config/rclone/rclone.conf", "# x\nRCLONE_ENCRYPT_V0:\nabc\n");
    let e = found(&of(None, Some("box")), &[], &[encrypted]).unwrap_err();
    assert!(e.to_string().contains("encrypted"), "{e}");
}
