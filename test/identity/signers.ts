import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { createServer, type Server } from 'node:http';

export type SignerAlgorithm = 'RS256' | 'ES256' | 'EdDSA';

/** A key of an issuer in a test. */
export interface Signer {
  readonly kid: string;
  readonly algorithm: SignerAlgorithm;
  readonly publicKey: KeyObject;
  readonly jwk: Readonly<Record<string, unknown>>;
  /** A compact JWS of exactly this header and payload. */
  seal(header: Readonly<Record<string, unknown>>, payload: Readonly<Record<string, unknown>>): string;
}

export function signer(kid: string, algorithm: SignerAlgorithm): Signer {
  const { publicKey, privateKey } = pair(algorithm);
  const signature = (text: string): Buffer => {
    const bytes = Buffer.from(text);
    if (algorithm === 'EdDSA') return sign(null, bytes, privateKey);
    return sign(
      'sha256',
      bytes,
      algorithm === 'ES256' ? { key: privateKey, dsaEncoding: 'ieee-p1363' } : privateKey,
    );
  };
  return {
    kid,
    algorithm,
    publicKey,
    jwk: { ...publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg: algorithm },
    seal: (header, payload) => sealed({ alg: algorithm, kid, ...header }, payload, signature),
  };
}

/** The same text under a secret, as who takes a public key for one would have it. */
export function sealWithSecret(
  secret: string | Uint8Array,
  header: Readonly<Record<string, unknown>>,
  payload: Readonly<Record<string, unknown>>,
): string {
  return sealed({ alg: 'HS256', ...header }, payload, (text) =>
    createHmac('sha256', secret).update(text).digest(),
  );
}

function sealed(header: object, payload: object, signature: (text: string) => Buffer): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const text = `${part(header)}.${part(payload)}`;
  return `${text}.${signature(text).toString('base64url')}`;
}

function pair(algorithm: SignerAlgorithm) {
  switch (algorithm) {
    case 'RS256':
      return generateKeyPairSync('rsa', { modulusLength: 2_048 });
    case 'ES256':
      return generateKeyPairSync('ec', { namedCurve: 'P-256' });
    case 'EdDSA':
      return generateKeyPairSync('ed25519');
  }
}

/** Publishes key sets over HTTP, as an issuer does; what it answers can be changed while it runs. */
export class KeyServer {
  keys: readonly Signer[] = [];
  /** Answer to give instead, while it has a fault. */
  fault: 'status' | 'nonsense' | 'endless' | 'silence' | 'redirect' | null = null;
  fetched = 0;
  readonly #server: Server;
  #port = 0;

  constructor() {
    this.#server = createServer((_request, reply) => {
      this.fetched += 1;
      const body = JSON.stringify({ keys: this.keys.map((key) => key.jwk) });
      if (this.fault === null) reply.end(body);
      else if (this.fault === 'status') reply.writeHead(500).end(body);
      else if (this.fault === 'redirect') reply.writeHead(302, { location: '/elsewhere' }).end();
      else if (this.fault === 'nonsense') reply.end('<html></html>');
      else if (this.fault === 'endless') endless(reply);
    });
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.#port, '127.0.0.1', resolve));
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('the key server has no port');
    this.#port = address.port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/jwks`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

function endless(reply: {
  write(chunk: string): boolean;
  once(event: 'drain' | 'close', go: () => void): unknown;
}): void {
  let open = true;
  reply.once('close', () => {
    open = false;
  });
  const more = (): void => {
    if (!open) return;
    reply.write(' '.repeat(65_536));
    reply.once('drain', more);
  };
  more();
}

/** Claims of an actor token of `user:analyst`, valid for five minutes. */
export function actorClaims(iss: string, aud: string): Readonly<Record<string, unknown>> {
  const now = Math.floor(Date.now() / 1_000);
  return {
    version: 2,
    tenant_id: 'demo',
    chain: ['user:analyst'],
    sub: 'user:analyst',
    roles: [],
    acl_roles: ['analyst'],
    iss,
    aud,
    iat: now,
    exp: now + 300,
    jti: crypto.randomUUID(),
  };
}
