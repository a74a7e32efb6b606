import { getPublic } from '../client.js';
import { EXIT, Failure } from '../exit.js';

export interface LoginOffer {
  readonly issuer: string;
  readonly clientId: string;
  readonly scopes: readonly string[];
}

export async function offerOf(server: string): Promise<LoginOffer> {
  const { body } = await getPublic(server, '/.well-known/oauth-protected-resource/mcp');
  const offer = body['osl_login'];
  const said: Readonly<Record<string, unknown>> =
    typeof offer === 'object' && offer !== null ? { ...offer } : {};
  const { issuer, client_id: clientId, scopes } = said;
  if (typeof issuer === 'string' && typeof clientId === 'string' && Array.isArray(scopes))
    return { issuer, clientId, scopes: scopes.map(String) };
  throw new Failure(
    EXIT.failed,
    `error: ${server} names nobody to log in with: its operator adds \`login\` to an issuer of OSL_ISSUERS, or you name one with --issuer and --client-id`,
  );
}
