/** The console: built pages at `/console`, on the port of REST. */
export { consoleFiles } from './files.js';
export type { ConsoleOptions, DemoSignIn } from './options.js';
export { CONSOLE_METHODS, consoleRoutes } from './route.js';
