import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** What a certificate says beside its subject. */
interface Wanted {
  /** As `openssl req -subj` takes it: `/O=Corp/CN=maria`. */
  readonly subject: string;
  /** As `subjectAltName` takes it: `DNS:a.example,URI:spiffe://corp/a`. */
  readonly names?: string;
  /** `extendedKeyUsage`; unset, it is good for anything. */
  readonly usage?: 'serverAuth' | 'clientAuth';
  /** Days from now; negative for one that has ended. 2 unless told. */
  readonly days?: number;
  readonly digest?: 'sha256' | 'sha384' | 'sha512';
  readonly algorithm?: 'ec' | 'rsa' | 'rsa-pss' | 'ed25519';
}

/** PEM. */
export interface Pair {
  readonly cert: string;
  readonly key: string;
}

/** An authority that issues certificates. */
export interface Authority {
  /** PEM. */
  readonly ca: string;
  issue(wanted: Wanted): Pair;
  /** The list of these certificates as revoked; PEM, good for two days. */
  revoking(pairs: readonly Pair[]): string;
  /** Removes its files. */
  end(): void;
}

const KEYS = {
  ec: ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:prime256v1'],
  rsa: ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048'],
  'rsa-pss': ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048'],
  ed25519: ['-algorithm', 'ED25519'],
} as const;

/** An authority of its own, with openssl. Its own key is of `algorithm`, which is how its certificates are signed. */
export function authority(subject: string, algorithm: keyof typeof KEYS = 'ec'): Authority {
  const dir = mkdtempSync(join(tmpdir(), 'osl-authority-'));
  const at = (name: string): string => join(dir, name);
  const openssl = (...args: string[]): void => {
    execFileSync('openssl', args, { stdio: 'ignore' });
  };
  openssl('genpkey', ...KEYS[algorithm], '-out', at('ca.key'));
  openssl('req', '-x509', '-new', '-key', at('ca.key'), '-subj', subject, '-days', '3', '-out', at('ca.crt'));
  let issued = 0;
  return {
    ca: readFileSync(at('ca.crt'), 'utf8'),
    issue: ({ subject: named, names, usage, days = 2, digest, algorithm: own = 'ec' }) => {
      issued += 1;
      const [key, request, cert, extensions] = ['key', 'csr', 'crt', 'ext'].map((e) => at(`${issued}.${e}`));
      openssl('genpkey', ...KEYS[own], '-out', `${key}`);
      openssl('req', '-new', '-utf8', '-key', `${key}`, '-subj', named, '-out', `${request}`);
      const lines = [
        ...(names === undefined ? [] : [`subjectAltName=${names}`]),
        ...(usage === undefined ? [] : [`extendedKeyUsage=${usage}`]),
        'basicConstraints=CA:FALSE',
      ];
      writeFileSync(`${extensions}`, lines.join('\n'));
      const by = ['-CA', at('ca.crt'), '-CAkey', at('ca.key'), '-set_serial', `${issued}`];
      const how = [
        ...(digest === undefined ? [] : [`-${digest}`]),
        ...(algorithm === 'rsa-pss' ? ['-sigopt', 'rsa_padding_mode:pss'] : []),
      ];
      openssl(
        'x509',
        '-req',
        '-in',
        `${request}`,
        ...by,
        ...how,
        '-days',
        `${days}`,
        '-extfile',
        `${extensions}`,
        '-out',
        `${cert}`,
      );
      return { cert: readFileSync(`${cert}`, 'utf8'), key: readFileSync(`${key}`, 'utf8') };
    },
    revoking: (pairs) => {
      issued += 1;
      const entry = ({ cert }: Pair): string => {
        const serial = new X509Certificate(cert).serialNumber;
        return `R\t491231235959Z\t250101000000Z\t${serial}\tunknown\t/CN=revoked`;
      };
      writeFileSync(at(`${issued}.index`), pairs.map((pair) => `${entry(pair)}\n`).join(''));
      const section = [
        '[ca]',
        'default_ca=own',
        '[own]',
        `database=${at(`${issued}.index`)}`,
        'default_md=sha256',
      ];
      writeFileSync(at(`${issued}.cnf`), section.join('\n'));
      const by = ['-cert', at('ca.crt'), '-keyfile', at('ca.key'), '-config', at(`${issued}.cnf`)];
      openssl('ca', '-gencrl', ...by, '-crldays', '2', '-out', at(`${issued}.crl`));
      return readFileSync(at(`${issued}.crl`), 'utf8');
    },
    end: () => rmSync(dir, { recursive: true, force: true }),
  };
}
