import { createHash, createHmac } from 'node:crypto';

/** Credentials for an object store. */
export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string | null;
}

export interface S3Request {
  readonly method: 'GET' | 'PUT';
  readonly url: URL;
  readonly region: string;
  /** Headers that are signed beside those that must be; names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** The headers of a request with AWS Signature Version 4. */
export function signedHeaders(
  { method, url, region, headers, body }: S3Request,
  { accessKeyId, secretAccessKey, sessionToken }: S3Credentials,
  now: Date,
): Readonly<Record<string, string>> {
  const time = now.toISOString().replace(/[-:]|\.\d{3}/g, '');
  const day = time.slice(0, 8);
  const digest = createHash('sha256').update(body).digest('hex');
  const all: Record<string, string> = {
    ...headers,
    host: url.host,
    'x-amz-content-sha256': digest,
    'x-amz-date': time,
    ...(sessionToken !== null && { 'x-amz-security-token': sessionToken }),
  };
  const names = Object.keys(all).sort();
  const query = [...url.searchParams]
    .map(([name, value]) => `${escaped(name)}=${escaped(value)}`)
    .sort()
    .join('&');
  const canonical = [
    method,
    url.pathname
      .split('/')
      .map((part) => escaped(decodeURIComponent(part)))
      .join('/'),
    query,
    ...names.map((name) => `${name}:${all[name]?.trim()}`),
    '',
    names.join(';'),
    digest,
  ].join('\n');
  const scope = `${day}/${region}/s3/aws4_request`;
  const text = `AWS4-HMAC-SHA256\n${time}\n${scope}\n${createHash('sha256').update(canonical).digest('hex')}`;
  const key = [day, region, 's3', 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${secretAccessKey}`);
  const signature = createHmac('sha256', key).update(text).digest('hex');
  return {
    ...all,
    authorization: `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope},SignedHeaders=${names.join(';')},Signature=${signature}`,
  };
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

function escaped(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
