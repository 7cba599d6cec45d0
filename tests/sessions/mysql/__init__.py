"""Sessions on MySQL and MariaDB."""
