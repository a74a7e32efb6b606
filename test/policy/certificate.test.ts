import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import t from 'tap';
import { readClientCertificate } from '../../policy/index.js';
import { authority } from '../support/authority.js';

const root = authority('/C=DE/O=Corp/CN=Root, the first');
t.teardown(() => root.end());
const read = (subject: string, names?: string) =>
  readClientCertificate(
    new X509Certificate(root.issue({ subject, ...(names !== undefined && { names }) }).cert),
  );

t.test('names are read whole, whatever signs they have', async (t) => {
  const { dn, cn, issuer, names } = read(
    '/C=DE/O=Corp, Ltd./CN=Møller "x"',
    'DNS:A.Example,URI:spiffe://corp/a,email:a@corp.example,IP:10.0.0.1',
  );
  t.equal(dn, 'CN=Møller \\"x\\",O=Corp\\, Ltd.,C=DE');
  t.equal(cn, 'Møller "x"');
  t.equal(issuer, 'CN=Root\\, the first,O=Corp,C=DE');
  t.same([...names], ['dns:a.example', 'uri:spiffe://corp/a', 'email:a@corp.example']);
  const pem = root.issue({ subject: '/C=DE/O=Corp, Ltd./CN=Møller "x"' }).cert;
  const how = ['x509', '-noout', '-subject', '-nameopt', 'RFC2253,-esc_msb'];
  const printed = execFileSync('openssl', how, { input: pem, encoding: 'utf8' });
  t.equal(printed.trim(), `subject=${dn}`, 'as the documentation has openssl print it');
  t.same(read('/O=Corp').cn, null);
  t.same(read('/CN=a/CN=b').cn, null, 'two are none');
  t.same([...read('/CN=a').names], []);
});

t.test('a name that is written as if it were several is one', async (t) => {
  // openssl.cnf cannot put a comma into a name, so an alternative name comes by way of Node's own text of one.
  const certificate = new X509Certificate(root.issue({ subject: '/CN=a' }).cert);
  const shown = (text: string) => {
    const names = Object.create(certificate, { subjectAltName: { value: text } });
    const members = ['subject', 'issuer', 'validTo'] as const;
    for (const member of members) Object.defineProperty(names, member, { value: certificate[member] });
    Object.defineProperty(names, 'toLegacyObject', { value: () => certificate.toLegacyObject() });
    return [...readClientCertificate(names).names];
  };
  t.same(shown('URI:"https://x/, DNS:bi.corp.example"'), ['uri:https://x/, DNS:bi.corp.example']);
  t.same(shown('DNS:"a\\", DNS:b", DNS:c'), ['dns:a", dns:b', 'dns:c']);
  t.same(shown('othername:<unsupported>, DNS:c'), ['dns:c']);
  t.same(shown('DNS:"a'), [], 'what is not well formed is no name');
});
