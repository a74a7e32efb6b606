export { withoutPassword } from '../engine/index.js';

const WORDS: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'nothing listens there'],
  ['ENOTFOUND', 'the host is not known'],
  ['EAI_AGAIN', 'the host is not known'],
  ['ETIMEDOUT', 'no answer in time'],
  ['EHOSTUNREACH', 'the host cannot be reached'],
  ['ECONNRESET', 'the connection was cut'],
  ['ENOENT', 'there is no such socket'],
  ['28P01', 'the password is wrong, or the role does not exist'],
  ['3D000', 'there is no such database'],
  ['53300', 'the server takes no more connections'],
  ['57P03', 'the server is starting up'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', "the server's certificate is self-signed: name it with sslrootcert"],
  ['SELF_SIGNED_CERT_IN_CHAIN', "the server's certificate is not trusted: name its issuer with sslrootcert"],
]);

/** Reason of a connection failure, for the operator. */
export function connectFault(error: unknown): string {
  if (error instanceof AggregateError) return connectFault(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  const { code = '', syscall, path }: NodeJS.ErrnoException = error;
  if (syscall === 'open') return `the file ${path} that the URL names cannot be read (${code})`;
  const words = WORDS.get(code);
  if (words !== undefined) return words;
  if (error.message.includes('password must be a string'))
    return 'the server wants a password, and the URL has none';
  if (error.message === 'timeout expired') return 'no answer in time';
  return error.message.replace(/\s*\n\s*/g, ' ').trim() || code || error.name;
}
