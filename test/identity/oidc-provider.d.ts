/** Parts that the tests use; its own types bring those of a web framework along. */
declare module 'oidc-provider' {
  import type { Server } from 'node:http';

  // biome-ignore lint/style/noDefaultExport: the package has one
  export default class Provider {
    constructor(issuer: string, configuration: object);
    listen(port: number, host: string, listening: () => void): Server;
  }
}
