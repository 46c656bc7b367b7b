#![allow(clippy::unwrap_used)]
use super::*;

fn parse(url: &str) -> Result<Proxy, Fault> {
    Proxy::parse(url, "HTTPS_PROXY")
}

fn basic(url: &str) -> String {
    parse(url).unwrap().authorization().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn urls_of_proxies() {
    for (url, shown) in [
        ("http://proxy:3128", "http://proxy:3128"),
        ("proxy.example.org:3128", "http://proxy.example.org:3128"),
        (" http://proxy:3128/ ", "http://proxy:3128"),
        ("http://proxy", "http://proxy:80"),
        ("https://proxy", "https://proxy:443"),
        ("http://10.0.0.1:8080", "http://10.0.0.1:8080"),
        ("http://[fd00::1]:8080", "http://[fd00::1]:8080"),
        ("http://[fd00::1]", "http://[fd00::1]:80"),
        ("http://user:secret@proxy:3128", "http://proxy:3128"),
        ("user:secret@proxy:3128", "http://proxy:3128"),
    ] {
        assert_eq!(parse(url).unwrap().to_string(), shown, "{url}");
    }
    assert_eq!(parse("http://proxy:1").unwrap().authorization(), None);
    // "Aladdin:open sesame", the example of RFC 7617, and a password of characters that must be encoded in a URL.
    assert_eq!(basic("http://Aladdin:open%20sesame@proxy:1"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    assert_eq!(basic("http://user:p%40s%3A%2F%23@proxy:1"), "Basic dXNlcjpwQHM6LyM=");
    assert_eq!(basic("http://user@proxy:1"), "Basic dXNlcjo=");
}

#[test]
fn an_invalid_proxy_url_is_refused_and_never_shown() {
    for url in [
        "http://user:hunter2@proxy@elsewhere:3128",
        "http://user:hunter2#@proxy:3128",
        "http://user:hunter2/@proxy:3128",
        "http://user:hunter2?@proxy:3128",
        "http://user:hunter2 @proxy:3128",
        "socks5://user:hunter2@proxy:1080",
        "ftp://user:hunter2@proxy",
        "http://proxy:hunter2",
        "http://proxy:99999",
        "http://user:hunter2@",
        "http://",
        "http://:3128",
        "http://proxy:3128/path",
        "off course",
    ] {
        let fault = parse(url).unwrap_err();
        assert_eq!(fault.code, ErrorCode::InvalidInput);
        assert!(fault.message.starts_with("HTTPS_PROXY ") && fault.message.contains("write http://HOST:PORT"), "{url}: {fault}");
        assert!(!fault.message.contains("hunter2"), "{fault}");
    }
    let shown = format!(
        "{:?} {}",
        ProxyChoice::parse("http://user:hunter2@proxy:1", "`proxy`").unwrap(),
        parse("http://u:hunter2@p:1").unwrap()
    );
    assert!(!shown.contains("hunter2") && !shown.contains("aHVudGVyMg"), "{shown}");
}

#[test]
fn a_configuration_says_off_or_which() {
    assert_eq!(ProxyChoice::parse("off", "`proxy`").unwrap(), ProxyChoice::Off);
    let given = ProxyChoice::parse("http://proxy:3128", "`proxy`").unwrap();
    // A configured proxy applies to every host, including the loopback.
    let settings = ProxySettings { choice: given, ca_bundle: None };
    assert_eq!(settings.proxy_for("127.0.0.1", 8443).unwrap().unwrap().source(), "`proxy`");
    let off = ProxySettings { choice: ProxyChoice::Off, ca_bundle: None };
    assert_eq!(off.proxy_for("coordinator.example", 443).unwrap(), None);
}

/// Returns the proxy for a host in an environment with these variables.
fn chosen(variables: &[(&str, &str)], host: &str, port: u16) -> Option<String> {
    let variable = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    from_environment(host, port, variable).unwrap().map(|proxy| format!("{proxy} by {}", proxy.source()))
}

#[test]
fn the_environment_names_the_proxy() {
    let host = "coordinator.example";
    assert_eq!(chosen(&[], host, 443), None);
    assert_eq!(chosen(&[("HTTPS_PROXY", "")], host, 443), None);
    assert_eq!(chosen(&[("HTTP_PROXY", "http://p:1")], host, 443), None);
    let upper = chosen(&[("HTTPS_PROXY", "http://p:1"), ("https_proxy", "http://q:2")], host, 443);
    assert_eq!(upper.unwrap(), "http://p:1 by HTTPS_PROXY");
    assert_eq!(chosen(&[("HTTPS_PROXY", " "), ("https_proxy", "q:2")], host, 443).unwrap(), "http://q:2 by https_proxy");
    for loopback in ["localhost", "LOCALHOST", "127.0.0.1", "127.8.8.8", "::1"] {
        assert_eq!(chosen(&[("HTTPS_PROXY", "http://p:1")], loopback, 443), None, "{loopback}");
    }
    let broken = from_environment(host, 443, |name| (name == "https_proxy").then(|| "socks5://p:1".to_owned())).unwrap_err();
    assert!(broken.message.starts_with("https_proxy names a SOCKS proxy"), "{broken}");
}

#[test]
fn no_proxy_names_hosts_domains_networks_and_ports() {
    for (list, host, direct) in [
        ("coordinator.example", "coordinator.example", true),
        ("Coordinator.Example", "coordinator.example", true),
        ("example", "coordinator.example", true),
        (".example", "coordinator.example", true),
        ("*.example", "coordinator.example", true),
        ("ample", "coordinator.example", false),
        ("coordinator", "coordinator.example", false),
        ("other.org, .example", "coordinator.example", true),
        ("other.org .example", "coordinator.example", true),
        ("other.org", "coordinator.example", false),
        ("*", "coordinator.example", true),
        ("*", "10.1.2.3", true),
        ("*", "fd00::1", true),
        ("coordinator.example:8443", "coordinator.example", true),
        ("coordinator.example:443", "coordinator.example", false),
        (".example:8443", "coordinator.example", true),
        ("*:443", "coordinator.example", false),
        ("10.1.2.3", "10.1.2.3", true),
        ("10.1.2.3:8443", "10.1.2.3", true),
        ("10.1.2.3:443", "10.1.2.3", false),
        ("10.0.0.0/8", "10.1.2.3", true),
        ("10.0.0.0/8", "11.1.2.3", false),
        ("fd00::/8", "fd00::1", true),
        ("fd00::1", "fd00::1", true),
        ("[fd00::1]:8443", "fd00::1", true),
        ("[fd00::1]:443", "fd00::1", false),
        ("[fd00::1]", "fd00::1", true),
        ("", "coordinator.example", false),
        (",, ,", "coordinator.example", false),
    ] {
        let environment = [("HTTPS_PROXY", "http://p:1"), ("no_proxy", list)];
        assert_eq!(chosen(&environment, host, 8443).is_none(), direct, "{list:?} {host}");
    }
}
