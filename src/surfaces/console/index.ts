/** The console: built pages at `/console`, on the port of REST. */
export {
  CONSOLE_METHODS,
  type ConsoleOptions,
  consoleFiles,
  consoleRoutes,
  type DemoSignIn,
} from './route.js';
