//! The path to the coordinator, step by step: name, proxy, TCP, TLS, clocks, and the coordinator's health service.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use conclave_proto::PROTOCOL;
use conclave_proto::error::{ErrorCode, Fault, from_status};
use conclave_proto::revoked::{RevokedFile, RevokedList};
use conclave_proto::tls::{self, EXPIRY_WARNING, IdentityDir, PresentedCertificate, Wire, days_until};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::config::PartyConfig;
use conclave_ops::doctor::{Finding, Outcome};

const PATIENCE: Duration = Duration::from_secs(8);
/// Clock difference above which a warning is shown: certificates and statements carry times.
const SKEW: Duration = Duration::from_secs(60);

/// Checks reported as skipped after a failure.
const LATER: [&str; 5] = ["name", "tcp", "tls", "clock", "coordinator"];

pub(super) async fn check(config: &PartyConfig, identity: Option<IdentityDir>) -> Vec<Finding> {
    let (host, port) = match tls::host_and_port(&config.coordinator) {
        Ok(found) => found,
        Err(fault) => {
            let remedy = "write `coordinator` as https://host or https://host:port";
            return vec![Finding::fail("name", fault.to_string(), remedy)];
        }
    };
    let mut findings = Vec::new();
    let reached = connect(config, &host, port, &mut findings).await;
    let (Some(stream), Some(identity)) = (reached, identity) else {
        let why = if findings.iter().any(|f| ["tcp", "proxy"].contains(&f.code) && f.result == Outcome::Ok) {
            "needs this party's certificate"
        } else {
            "the coordinator can't be reached"
        };
        let done: Vec<&str> = findings.iter().map(|f| f.code).collect();
        findings.extend(LATER.iter().filter(|code| !done.contains(code)).map(|code| Finding::skipped(code, why)));
        return findings;
    };
    let revoked = match config.revoked.as_deref().map(|path| RevokedFile::at(path).read()).transpose() {
        Ok(revoked) => revoked,
        Err(fault) => {
            findings.push(Finding::fail("tls", fault.to_string(), "correct the file named by `revoked`"));
            return findings;
        }
    };
    let presented = shake_hands(stream, &host, &identity, revoked.clone(), &mut findings).await;
    let date = coordinator(config, &identity, revoked, &mut findings).await;
    findings.push(clock(date, presented.as_ref()));
    findings
}

/// Connects to the coordinator's port, through the proxy if there is one.
async fn connect(config: &PartyConfig, host: &str, port: u16, findings: &mut Vec<Finding>) -> Option<Wire> {
    match tls::tunnel_to(&config.coordinator, &config.proxy).await {
        Ok(None) => connect_directly(host, port, findings).await.map(|stream| Box::new(stream) as Wire),
        Ok(Some((proxy, tunnel))) => {
            findings.push(Finding::ok("proxy", format!("{proxy} ({}) opens a tunnel to the coordinator's port", proxy.source())));
            findings.extend(["name", "tcp"].map(|code| Finding::skipped(code, "done by the proxy")));
            Some(tunnel)
        }
        Err(fault) => {
            findings.push(Finding::fail(
                "proxy",
                fault.to_string(),
                "follow the message; docs/how-to/connect-to-the-coordinator.md has more on proxies",
            ));
            None
        }
    }
}

/// Connects to the coordinator's port without a proxy.
async fn connect_directly(host: &str, port: u16, findings: &mut Vec<Finding>) -> Option<TcpStream> {
    let addresses = match resolve(host, port).await {
        Ok(addresses) => addresses,
        Err(why) => {
            let remedy = "check `coordinator` in the configuration, and this machine's DNS (`getent hosts NAME`)";
            findings.push(Finding::fail("name", format!("{host} has no address: {why}"), remedy));
            return None;
        }
    };
    let listed = addresses.iter().map(|a| a.ip().to_string()).collect::<Vec<_>>().join(", ");
    findings.push(match host.parse::<std::net::IpAddr>() {
        Ok(_) => Finding::ok("name", format!("{host} is an address: no name lookup is needed")),
        Err(_) => Finding::ok("name", format!("{host} is {listed}")),
    });
    let mut why = String::new();
    for address in &addresses {
        match timeout(PATIENCE, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                findings.push(Finding::ok("tcp", format!("{address} answers")));
                return Some(stream);
            }
            Ok(Err(e)) => why = format!("{address}: {e}"),
            Err(_) => why = format!("{address} does not answer within {} s", PATIENCE.as_secs()),
        }
    }
    let refused = why.contains("refused");
    let remedy = if refused {
        "the machine is reachable but the port is closed: check that the coordinator runs and uses this port"
    } else {
        "allow outgoing connections from this machine to that address and port in the firewall; incoming ones are not needed"
    };
    findings.push(Finding::fail("tcp", why, remedy));
    None
}

async fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let found: Vec<SocketAddr> = match timeout(PATIENCE, tokio::net::lookup_host((host, port))).await {
        Ok(Ok(found)) => found.collect(),
        Ok(Err(e)) => return Err(e.to_string()),
        Err(_) => return Err(format!("no answer within {} s", PATIENCE.as_secs())),
    };
    if found.is_empty() { Err("the name exists but has no address".into()) } else { Ok(found) }
}

/// Performs the TLS handshake; returns the presented certificate.
async fn shake_hands(
    stream: Wire,
    host: &str,
    identity: &IdentityDir,
    revoked: Option<RevokedList>,
    findings: &mut Vec<Finding>,
) -> Option<PresentedCertificate> {
    const CODE: &str = "tls";
    let late = || Fault::new(ErrorCode::Unreachable, format!("no handshake within {} s", PATIENCE.as_secs()));
    let probe = timeout(PATIENCE, tls::probe(stream, host, identity, revoked)).await.unwrap_or_else(|_| Err(late()));
    let probe = match probe {
        Ok(probe) => probe,
        Err(fault) => {
            findings.push(Finding::fail(CODE, fault.to_string(), "check that the coordinator listens there"));
            return None;
        }
    };
    let names = probe.presented.as_ref().map(|seen| seen.names.join(", ")).unwrap_or_default();
    let now = SystemTime::now();
    let days = probe.presented.as_ref().map(|seen| days_until(seen.valid.1, now));
    findings.push(match (probe.verdict, days) {
        (Err(fault), _) => {
            let shown = probe.presented.as_ref().map(|seen| format!(" It is for {names}, signed by {}.", seen.issuer));
            let remedy = "ca.pem must be this consortium's, and `coordinator` a name in the certificate; a firewall that \
                          inspects TLS must pass this connection through";
            Finding::fail(CODE, format!("{fault}{}", shown.unwrap_or_default()), remedy)
        }
        (Ok(()), Some(days)) if days <= days_until(now + EXPIRY_WARNING, now) => Finding::warn(
            CODE,
            format!("the coordinator's certificate ({names}) is trusted, but expires in {days} days"),
            "ask the coordinator's operator to renew it",
        ),
        (Ok(()), days) => Finding::ok(
            CODE,
            format!("the coordinator's certificate ({names}) is trusted, valid for {} more days", days.unwrap_or_default()),
        ),
    });
    probe.presented
}

/// Queries the coordinator's health service over the same kind of connection as the party; returns the date of its answer.
async fn coordinator(
    config: &PartyConfig,
    identity: &IdentityDir,
    revoked: Option<RevokedList>,
    findings: &mut Vec<Finding>,
) -> Option<SystemTime> {
    const CODE: &str = "coordinator";
    let reply = timeout(2 * PATIENCE, async {
        let channel = tls::connect_through(&config.coordinator, identity, &config.proxy, revoked).await?;
        let mut client = HealthClient::new(channel);
        let request = |service: &str| HealthCheckRequest { service: service.to_owned() };
        let link = client.check(request("conclave.v1.Link")).await;
        let link = link.map_err(|status| from_status(&status))?;
        let spoken = client.check(request(&conclave_proto::protocol_service(PROTOCOL))).await;
        Ok::<_, Fault>((link, spoken))
    })
    .await
    .unwrap_or_else(|_| Err(Fault::new(ErrorCode::Unreachable, format!("no answer within {} s", 2 * PATIENCE.as_secs()))));
    let (link, spoken) = match reply {
        Ok(found) => found,
        Err(fault) => {
            let remedy = match fault.code {
                ErrorCode::Unauthenticated => {
                    "ask the coordinator's operator whether this certificate is revoked, and whether its ca.pem is the same"
                }
                _ => "check that the coordinator runs; its health service answers every member",
            };
            findings.push(Finding::fail(CODE, fault.to_string(), remedy));
            return None;
        }
    };
    let date =
        link.metadata().get("date").and_then(|date| date.to_str().ok()).and_then(|date| httpdate::parse_http_date(date).ok());
    const SERVING: i32 = 1;
    findings.push(if link.get_ref().status != SERVING {
        Finding::fail(CODE, "it answers, but does not serve parties now", "ask its operator; it may be stopping or starting")
    } else {
        match spoken {
            Ok(_) => Finding::ok(CODE, format!("it serves parties and uses this party's protocol, {PROTOCOL}")),
            Err(status) if status.code() == tonic::Code::NotFound => Finding::warn(
                CODE,
                format!("it serves parties but does not announce protocol {PROTOCOL}, this party's newest"),
                "an older coordinator may still serve this party; if attaching fails, use the same version on both sides",
            ),
            Err(status) => Finding::fail(CODE, from_status(&status).to_string(), "try again"),
        }
    });
    date
}

/// Compares this machine's clock with the coordinator's, or with its certificate.
fn clock(date: Option<SystemTime>, presented: Option<&PresentedCertificate>) -> Finding {
    const CODE: &str = "clock";
    const SET: &str = "set this machine's clock by NTP (`timedatectl`)";
    let now = SystemTime::now();
    if let Some(date) = date {
        let off = now.duration_since(date).unwrap_or_else(|e| e.duration());
        let found = format!("{} s from the coordinator's clock, by the date of its answer", off.as_secs());
        return if off > SKEW { Finding::warn(CODE, found, SET) } else { Finding::ok(CODE, found) };
    }
    match presented {
        Some(seen) if now < seen.valid.0 => {
            Finding::fail(CODE, "this clock is earlier than the start of the coordinator's certificate", SET)
        }
        Some(seen) if now > seen.valid.1 => {
            Finding::warn(CODE, "by this clock the coordinator's certificate has expired; if it has not, the clock is fast", SET)
        }
        Some(_) => {
            Finding::ok(CODE, "within the validity of the coordinator's certificate; the coordinator's clock could not be read")
        }
        None => Finding::skipped(CODE, "the coordinator sent neither a date nor a certificate"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_ops::doctor::Outcome;

    #[test]
    fn clocks_are_compared_with_the_best_that_there_is() {
        let (now, day) = (SystemTime::now(), Duration::from_secs(86_400));
        let seen = |from, to| PresentedCertificate { valid: (from, to), names: Vec::new(), issuer: String::new() };
        assert_eq!(clock(Some(now), None).result, Outcome::Ok);
        assert_eq!(clock(Some(now - 2 * SKEW), None).result, Outcome::Warn);
        assert_eq!(clock(Some(now + 2 * SKEW), None).result, Outcome::Warn);
        assert_eq!(clock(None, Some(&seen(now - day, now + day))).result, Outcome::Ok);
        assert_eq!(clock(None, Some(&seen(now + day, now + 2 * day))).result, Outcome::Fail);
        assert_eq!(clock(None, Some(&seen(now - 2 * day, now - day))).result, Outcome::Warn);
        assert_eq!(clock(None, None).result, Outcome::Skipped);
    }
}
