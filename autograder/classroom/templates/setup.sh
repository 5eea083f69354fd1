#!/usr/bin/env bash
# Choose an image with Python 3.11 or newer, such as Ubuntu 24.04.
set -e
apt-get update
apt-get install -y python3 python3-venv
{environment}python3 /autograder/source/course/workshop/install.py lab
