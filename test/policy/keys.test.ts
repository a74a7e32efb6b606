import { generateKeyPairSync, randomBytes } from 'node:crypto';
import t from 'tap';
import { configuredKeys } from '../../policy/tokens/keys.js';
import { PUBLIC_PEM, RSA, SECRET } from './tokens.js';

const weak = generateKeyPairSync('rsa', { modulusLength: 1_024 }).publicKey.export({
  type: 'spki',
  format: 'pem',
});
const curve = generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey.export({
  type: 'spki',
  format: 'pem',
});
const other = generateKeyPairSync('x25519').publicKey.export({ type: 'spki', format: 'pem' });
const secretPem = RSA.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

const REFUSED: readonly [string, Parameters<typeof configuredKeys>[0], RegExp][] = [
  ['no key at all', {}, /no verification key/],
  ['a secret of 5 bytes', { secrets: [{ secret: randomBytes(5) }] }, /at least 32 bytes, not 5/],
  ['a secret of 31 bytes', { secrets: [{ secret: randomBytes(31) }] }, /not 31/],
  ['an RSA key of 1,024 bits', { publicKeys: [{ pem: weak.toString() }] }, /2048 bits/],
  ['another elliptic curve', { publicKeys: [{ pem: curve.toString() }] }, /P-256/],
  ['another kind of key', { publicKeys: [{ pem: other.toString() }] }, /RSA .*P-256 .*Ed25519/],
  ['a private key', { publicKeys: [{ pem: secretPem }] }, /public key only/],
  ['a kid with a blank', { secrets: [{ secret: SECRET, kid: 'a b' }] }, /kid/],
  [
    'one kid for two algorithms',
    { secrets: [{ secret: SECRET, kid: 'k' }], publicKeys: [{ pem: PUBLIC_PEM, kid: 'k' }] },
    /same kid/,
  ],
  ['seventeen keys', { secrets: Array.from({ length: 17 }, () => ({ secret: SECRET })) }, /more than 16/],
];

t.test('unfit keys are refused at start', async (t) => {
  for (const [name, configuration, message] of REFUSED) {
    t.throws(() => configuredKeys(configuration), { name: 'RangeError', message }, name);
  }
});

t.test('a secret of 32 bytes is long enough', async (t) => {
  t.equal(
    (await configuredKeys({ secrets: [{ secret: randomBytes(32) }] }).candidates('HS256', null)).length,
    1,
  );
});
